// "Did you mean": the known name that is fewest keystrokes away from a misspelt one.

/** The nearest of `names` with at most a third of its letters wrong, or "". */
export function nearest(wrong, names) {
  let found = { name: "", distance: Infinity };
  for (const name of names) {
    const distance = keystrokes(wrong, name);
    if (distance < found.distance && distance <= Math.max(1, Math.floor(Math.max(wrong.length, name.length) / 3))) found = { name, distance };
  }
  return found.name;
}

/** Letters to insert, delete, replace or swap with the next one; of these a swap is the likeliest: tahn is tanh, not tan. */
function keystrokes(a, b) {
  const rows = Array.from({ length: a.length + 1 }, (_, i) => [i, ...Array(b.length).fill(0)]);
  for (let j = 1; j <= b.length; j += 1) rows[0][j] = j;
  for (let i = 1; i <= a.length; i += 1) {
    for (let j = 1; j <= b.length; j += 1) {
      const replaced = rows[i - 1][j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1);
      rows[i][j] = Math.min(rows[i - 1][j] + 1, rows[i][j - 1] + 1, replaced);
      const isSwap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      if (isSwap) rows[i][j] = Math.min(rows[i][j], rows[i - 2][j - 2] + 0.9);
    }
  }
  return rows[a.length][b.length];
}
