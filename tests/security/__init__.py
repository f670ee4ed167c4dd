"""A graph is untrusted input: whatever it says, it runs no code and fools no terminal.

``payloads`` is what an attacker would write, ``slots`` the places in a GraphDef where it can
stand, ``attack`` one attack with all that is looked at, ``sweep`` a command that makes them all:

    cd tests && python -m security.sweep
"""
