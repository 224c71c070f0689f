"""`remora import --from`: the files of frameworks' own stores, which are read, copied and compared.

A file is read twice before and while it is copied: what is wrong in it ends the command before anything is sent. Behind
the copy, what Remora has is read back and compared with the file. Knows no framework's package, and never unpickles.
"""
