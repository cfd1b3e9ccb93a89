"""Values of JSON that are odd in most places of a request."""

from __future__ import annotations

ODD = [
    *(
        "null",
        "true",
        "5",
        "-1",
        "1.5",
        "4294967296",
        "18446744073709551616",
        "9223372036854775808",
        "1e3",
        "1.0",
        "-0",
    ),
    *("-0.0", "1e400", "1e-400", "99999999999999999999999", "NaN", "Infinity", "1760000000000000000.0"),
    *('""', '"5"', '"-1"', '"1e3"', '"1.0"', '"1E2"', '"00"', '" 5"', '"5 "', '"+5"', '"1_0"', '"0x5"', '"\u0663"'),
    *(
        '"18446744073709551616"',
        '"1e99"',
        '"1e99999999999"',
        '"0e99"',
        '"NaN"',
        '"nan"',
        '"-Infinity"',
        '"true"',
        '"True"',
    ),
    *('"%s"' % ("AB" * 16), r'"x\ud800y"', r'"\ud83d\ude00"', '"\u00e9"', "[]", "[1]", "{}", "[{}]", '[{"key":"k"}]'),
    *('{"stringValue":"a","intValue":"5"}', '{"int_value":"1e3"}', '{"boolValue":"true"}', '{"boolValue":1}'),
    *('{"doubleValue":"1_0"}', '{"doubleValue":true}', '{"intValue":18446744073709551616}', '{"bytesValue":"_-8"}'),
]
"""As they are written."""
