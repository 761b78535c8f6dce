"""The part of Box2D 2.3 that moves the lunar lander, compiled, in Box2D's own order of arithmetic.

Three polygons (lander, two legs), two hinges with motor and limit, eleven static ground edges. Every kernel works
in float32 and performs the operations of the C++ library in the same order, so that states agree bit for bit with a
Box2D built without fused multiply-add; terms that the static ground makes exactly zero are left out. Up to 32
worlds advance side by side, so that the 180 sweeps over the constraints, where the time goes, run in vector
registers.

    scene            shapes, masses, hinges: what the environment builds
    state, starts    the world as arrays, and the memory of a step
    ground           terrain edges with their normals and boxes
    manifold         where an edge and a polygon touch
    contacts         the list of contacts: create, update, destroy
    joint, hinge     revolute joint with motor and limit
    contact_solver   contact impulses and removal of overlap
    island           one discrete step of the joined bodies, and sleep
    distance, impact, continuous   impacts within a step, against tunnelling
    world            one step of everything
    engines          what the controls do
    simulate         the compiled functions Python calls
    bridge           reading and writing a running environment
    parity, speed    how far and how much slower the Box2D of this machine is

The algorithms are Erin Catto's (Box2D, zlib licence); this is an independent, altered implementation for one scene.
"""
