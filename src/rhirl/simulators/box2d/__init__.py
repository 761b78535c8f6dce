"""The part of Box2D 2.3 that moves the lunar lander, compiled, in Box2D's own order of arithmetic.

Three polygons (lander, two legs), two hinges with motor and limit, eleven static ground edges. Every kernel works in
float32 and performs the operations of the C++ library in the same order, so that states agree bit for bit with a
Box2D built without fused multiply-add; terms that the static ground makes exactly zero are left out.

    scene          shapes, masses, hinges: what the environment builds
    ground         terrain edges with their normals and boxes
    manifold       touching points of an edge and a polygon
    contacts       the contact list: create, update, destroy
    hinge          revolute joint with motor and limit
    contact_solver contact impulses and overlap removal
    island         one time step of the joined bodies, and sleep
    distance, impact, continuous   the time-of-impact step against tunnelling
    world          one step of everything

The algorithms are Erin Catto's (Box2D, zlib licence); this is an independent, altered implementation for one scene.
"""
