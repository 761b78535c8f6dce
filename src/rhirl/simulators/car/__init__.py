"""Gymnasium's CarRacing-v3 (continuous), compiled: five bodies, four hinges, tyres, road tiles, and its picture.

    scene            shapes, masses, hinges: what the environment builds
    state            one car as a flat row of numbers, and what they mean
    track            the road that Gymnasium generates from a seed, as arrays
    tyres            what the controls do
    overlap, road    which tiles the car touches, and what that is worth
    hinge            revolute joints with motor and limit
    simulate         the compiled function Python calls: some cars, some steps
    bridge           reading and writing a running environment
    parity           how far the Gymnasium of this machine is
    render*          frames, drawn from a texture of the track

Box2D's algorithms are Erin Catto's (zlib licence); this is an independent, altered implementation for one scene.
"""
