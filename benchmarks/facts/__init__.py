"""What people say of themselves in the first person, with the facts that it states, and how well these are found.

All sentences are the project's own. The rules may be made on the development part. The part that is held out was
written when they were settled, and is only measured.
"""
