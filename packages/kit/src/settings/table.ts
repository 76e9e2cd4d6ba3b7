import type { Setting, SettingsSpec } from './setting.ts';

/** Renders a spec as Markdown for operators: a heading and a table per group, in the order of the spec. */
export function renderSettingsTable(spec: SettingsSpec): string {
  const groups = Map.groupBy(Object.values(spec), (setting) => setting.group);
  return [...groups].map(([group, settings]) => renderGroup(group, settings)).join('\n');
}

function renderGroup(group: string, settings: readonly Setting<unknown>[]): string {
  const rows = settings.map((setting) => row([...cells(setting)]));
  const heading = row(['Variable', 'Also read as', 'Default', 'Meaning', 'Form']);
  return [`## ${group}`, '', heading, row(['---', '---', '---', '---', '---']), ...rows, ''].join('\n');
}

function cells(setting: Setting<unknown>): readonly string[] {
  const meaning = setting.secret ? `${setting.doc} Secret: never printed.` : setting.doc;
  return [
    code(setting.env),
    setting.aliases.map(code).join(', '),
    defaultCell(setting),
    escapeCell(meaning),
    escapeCell(setting.form),
  ];
}

function defaultCell({ fallback, secret }: Setting<unknown>): string {
  if (!fallback) return 'required';
  if (fallback.text === '') return 'empty';
  return secret ? '(hidden)' : code(fallback.text);
}

const row = (columns: readonly string[]): string => `| ${columns.join(' | ')} |`;
const escapeCell = (value: string): string => value.replaceAll('|', '\\|').replaceAll(/\s+/g, ' ');
const code = (value: string): string => `\`${escapeCell(value)}\``;
