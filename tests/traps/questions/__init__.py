"""One module for each assertion type that asks the trace, named after it; test_mutations.py holds it to the program.

- `ASSERTION`: the fields of an assertion that the good run of faults.py passes.
- `OUTSIDE`: the faults (or `GROUPS` of them) that it does not catch, by the reason why they lie outside of its question. Every
  other fault must be caught: the verdict is no pass.
- `answer`: what the assertion means, written down a second time over plain spans, without any code of clawtrace. A fault may be
  declared outside only where the answer stays true.
"""
