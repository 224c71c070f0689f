"""`remora import --from`: the files of frameworks' own stores, which are read, copied and compared.

The first reading checks the file: an error in it ends the command before anything is sent. The second one copies. Then
the records in Remora are read back and compared with the file. This knows no framework's package and unpickles nothing.
"""
