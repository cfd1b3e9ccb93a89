// Aligns two sequences by their longest common subsequence.

export interface Pair<T> {
  left: T | null;
  right: T | null;
}

const MOST = 4_000_000;

/** Return both sequences side by side: equal items in one row, others alone. */
export function align<T>(left: T[], right: T[], same: (a: T, b: T) => boolean): Pair<T>[] {
  let start = 0;
  while (start < left.length && start < right.length && same(left[start]!, right[start]!)) start++;
  let end = 0;
  while (
    end < left.length - start && end < right.length - start && same(left.at(-1 - end)!, right.at(-1 - end)!)
  ) end++;
  const a = left.slice(start, left.length - end);
  const b = right.slice(start, right.length - end);
  const both = (x: T[], y: T[]): Pair<T>[] => x.map((item, index) => ({ left: item, right: y[index]! }));
  return [
    ...both(left.slice(0, start), right.slice(0, start)),
    ...middle(a, b, same),
    ...both(left.slice(left.length - end), right.slice(right.length - end)),
  ];
}

function middle<T>(a: T[], b: T[], same: (a: T, b: T) => boolean): Pair<T>[] {
  if (a.length * b.length > MOST) {
    return [...a.map((left) => ({ left, right: null })), ...b.map((right) => ({ left: null, right }))];
  }
  const width = b.length + 1;
  const longest = new Uint32Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      longest[i * width + j] = same(a[i]!, b[j]!)
        ? longest[(i + 1) * width + j + 1]! + 1
        : Math.max(longest[(i + 1) * width + j]!, longest[i * width + j + 1]!);
    }
  }
  const rows: Pair<T>[] = [];
  let i = 0;
  let j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && same(a[i]!, b[j]!)) rows.push({ left: a[i++]!, right: b[j++]! });
    else if (j >= b.length || (i < a.length && longest[(i + 1) * width + j]! >= longest[i * width + j + 1]!)) {
      rows.push({ left: a[i++]!, right: null });
    } else rows.push({ left: null, right: b[j++]! });
  }
  return rows;
}
