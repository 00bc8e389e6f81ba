"""A submission in a process of its own, which holds nothing worth stealing.

The judge (parent) keeps the HBM arrays, the meter, the oracle and the verdict. The student's
process (child) gets its own source, and tiles on request; bytes come back, and nothing else is
believed. What each file is for:

    isolated.py        the candidate the examinations see; serves loads and stores
    channel.py         the judge's end of the two pipes: deadlines, sizes, garbage
    frames.py          what one message looks like on the wire
    sandbox.py         the one place that builds the child's command line and environment
    wall.py            bubblewrap around it: what the child sees of this machine
    rooms.py           the folders of one run, and the few course files in them
    stand_ins.py       `check` and the like, which do nothing while grading
    limits.py          seconds, memory, output; the child puts them on itself before any cell runs
    process_tree.py    ending the child and everything it started
    uninterrupted.py   Ctrl-C waits until that is done
    child.py           the child's main loop
    remote_machine.py  a Machine whose HBM is at the other end of the pipe

Where bubblewrap cannot run there is no wall: the limits stay, but the child can see, and reach,
whatever the user who grades can.
"""
