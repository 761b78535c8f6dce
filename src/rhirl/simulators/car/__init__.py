"""Gymnasium's CarRacing-v3 (continuous), compiled: five bodies, four hinges, tyres, road tiles.

    state            one car as a flat row of numbers, and what they mean
    track            the road that Gymnasium generates from a seed, as arrays

Box2D's algorithms are Erin Catto's (zlib licence); this is an independent, altered implementation for one scene.
"""
