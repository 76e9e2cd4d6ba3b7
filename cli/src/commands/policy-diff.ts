import type { Command } from 'commander';
import { CommandFailure, exitCodes } from '../failure.ts';
import { printJson, style, type Terminal } from '../output/terminal.ts';
import { type LoadedPolicies, loadPolicies, requireValid } from '../policies/load.ts';
import { readSources } from '../policies/sources.ts';
import { type Change, compareStatements } from '../policy-diff/compare.ts';
import { describeFiles } from '../policy-diff/describe-files.ts';
import { type Environment, type LocalOptions, localCommand } from './command.ts';

interface DiffOptions extends LocalOptions {
  readonly failOnLooser?: true;
}

/** `tollgate policy diff`: what a change means to callers. */
export function diffCommand({ terminal, readInput }: Environment): Command {
  return localCommand('diff', 'Compare policies by what they mean: who may call, and how much.', [
    'tollgate policy diff old.yaml new.yaml',
    'git show main:policy.yaml | tollgate policy diff - policy.yaml --fail-on-looser',
  ])
    .argument('<old>', 'A file, a folder, or - for standard input.')
    .argument('<new>', 'A file, a folder, or - for standard input.')
    .option('--fail-on-looser', 'Exit with 3 when more callers or more requests may pass.')
    .action(async (old: string, next: string, { json, failOnLooser }: DiffOptions) => {
      const read = async (path: string): Promise<LoadedPolicies> =>
        requireValid(loadPolicies(await readSources([path], readInput)));
      const changes = compareStatements(describeFiles(await read(old)), describeFiles(await read(next)));
      if (json) printJson(terminal, changes);
      else printChanges(terminal, changes);
      const looser = changes.filter(({ effect }) => effect === 'looser').length;
      if (failOnLooser && looser > 0)
        throw new CommandFailure(
          `${looser} ${looser === 1 ? 'change lets' : 'changes let'} more pass`,
          exitCodes.unhealthy,
        );
    });
}

const signs = { added: '+', removed: '-', changed: '~' } as const;
const colors = { added: 'green', removed: 'red', changed: 'cyan' } as const;
const effectColors = { stricter: 'yellow', looser: 'red', unknown: 'dim' } as const;

function printChanges(terminal: Terminal, changes: readonly Change[]): void {
  if (changes.length === 0) terminal.warn('The policies mean the same.');
  let subject: string | undefined;
  for (const one of changes) {
    if (one.subject !== subject) terminal.print(`${style(terminal, 'bold', one.subject)}\n`);
    ({ subject } = one);
    terminal.print(formatChange(terminal, one));
  }
}

function formatChange(terminal: Terminal, { part, name, change, effect, before, after }: Change): string {
  const place = [part, name].filter((text) => text !== '').join(', ') || 'all';
  const values = [before, after].filter((text) => text !== undefined).join(' → ');
  const line = style(terminal, colors[change], `  ${signs[change]} ${place}: ${values}`);
  return `${line}${effect === 'unknown' ? '' : `  ${style(terminal, effectColors[effect], effect)}`}\n`;
}
