/** Colors of the hosted pages, the console and the pages for operators, which look alike. */
export const colors = {
  light: {
    back: '#f4f4f5',
    card: '#ffffff',
    text: '#18181b',
    dim: '#52525b',
    /** Borders of controls. */
    line: '#71717a',
    /** Lines between rows. */
    rule: '#e4e4e7',
    accent: '#1d4ed8',
    ok: '#15692f',
    warn: '#8a5a00',
    bad: '#b91c1c',
  },
  dark: {
    back: '#18181b',
    card: '#27272a',
    text: '#f4f4f5',
    dim: '#d4d4d8',
    line: '#a1a1aa',
    rule: '#3f3f46',
    accent: '#93c5fd',
    ok: '#86efac',
    warn: '#fcd34d',
    bad: '#fca5a5',
  },
} as const;

export const fonts = {
  text: 'system-ui, sans-serif',
  code: 'ui-monospace, monospace',
} as const;

/** Custom properties of CSS for both color schemes, as `--text: light-dark(#18181b, #f4f4f5)`. */
export function colorVariables(): string {
  const names = Object.keys(colors.light) as (keyof typeof colors.light)[]; // Of a constant.
  return names.map((name) => `--${name}: light-dark(${colors.light[name]}, ${colors.dark[name]});`).join(' ');
}
