import { type CommandEntry, type Commands, commonFlags, type Flag } from './arguments.ts';

/** The help of a command, of the commands of a group, or of all. */
export function helpText(commands: Commands, name: string): string {
  const entry = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (entry !== undefined) return commandHelp(name, entry);
  const listed = Object.entries(commands).filter(([known]) => name === '' || known.startsWith(`${name} `));
  const title = name === '' ? '[command]' : `${name} <command>`;
  return `tollgate-auth ${title} [-c file] [-d folder]

The user authentication server. It is configured by environment variables (see docs/settings-auth.md), which
override those of the file .env. To try it: npm start -w services/auth

${listed.map(([known, { doc, args = [] }]) => row([known, ...args].join(' '), doc)).join('\n')}

${flagRows(commonFlags)}

tollgate-auth <command> --help prints the flags of a command.

Exit codes: 0 success, 1 failure, 2 invalid arguments, 3 lines that were not imported (see import --errors).

Examples:
  tollgate-auth -c auth.env users list --plan gold --banned true
  tollgate-auth -c auth.env users ban ada@example.com --for 24h
  tollgate-auth -c auth.env import users.ndjson --dry-run
  jq -c '.users[]' export.json | tollgate-auth -c auth.env import -
`;
}

function commandHelp(name: string, { doc, args = [], flags = {}, details }: CommandEntry): string {
  const usage = ['tollgate-auth', name, ...args, ...(Object.keys(flags).length > 0 ? ['[flags]'] : [])];
  return `${usage.join(' ')}

${doc}
${details === undefined ? '' : `\n${details}\n`}
${flagRows({ ...flags, ...commonFlags })}
`;
}

function flagRows(flags: Readonly<Record<string, Flag & { readonly short?: string }>>): string {
  return Object.entries(flags)
    .map(([name, { doc, value, short }]) => {
      const long = `--${name}${value === undefined ? '' : ` <${value}>`}`;
      return row(short === undefined ? `    ${long}` : `-${short}, ${long}`, doc);
    })
    .join('\n');
}

const column = 42;

/** A long name gets a line of its own. */
function row(name: string, doc: string): string {
  const gap = name.length < column ? name.padEnd(column) : `${name}\n  ${' '.repeat(column)}`;
  return `  ${gap} ${doc}`;
}
