import { escapeControls } from '@tollgate/kit/table';
import type { Source } from '@tollgate/policies/files/documents';
import { loadPolicies } from '@tollgate/policies/files/load';
import type { Command } from 'commander';
import { connectXds } from '../connection/connect.ts';
import { CommandFailure, exitCodes } from '../failure.ts';
import { printJson, style, type Terminal } from '../output/terminal.ts';
import { readSources, requireValid } from '../policies/sources.ts';
import { type Change, compareStatements } from '../policy-diff/compare.ts';
import { describeFiles } from '../policy-diff/describe-files.ts';
import { readLive } from '../policy-diff/live.ts';
import type { Statement } from '../policy-diff/statement.ts';
import { type CommonOptions, command, type Environment, toSource } from './command.ts';

interface DiffOptions extends CommonOptions {
  readonly failOnLooser?: true;
}

/** `tollgate policy diff`: what a change means to callers. */
export function diffCommand(environment: Environment): Command {
  const { terminal } = environment;
  return command('diff', 'Compare policies by what they mean: who may call, and how much.', [
    'tollgate policy diff old.yaml new.yaml',
    'tollgate policy diff new.yaml --context shop',
    'git show main:policy.yaml | tollgate policy diff - policy.yaml --fail-on-looser',
  ])
    .exitsWithFinding('a change is looser, with --fail-on-looser, or a file has a problem')
    .argument(
      '<old>',
      'A file, a folder, or - for standard input. Alone, it is compared with what is in force.',
    )
    .argument('[new]', 'A file, a folder, or - for standard input.')
    .option('--fail-on-looser', 'Exit with 3 when more callers or more requests may pass.')
    .action(async (old: string, next: string | undefined, options: DiffOptions) => {
      const { json, failOnLooser } = options;
      const [before, after] = await readBoth(environment, { old, next, options });
      const changes = compareStatements(describe(before), describe(after));
      if (json) printJson(terminal, changes);
      else printChanges(terminal, changes);
      const looser = changes.filter(({ effect }) => effect === 'looser').length;
      if (!failOnLooser || looser === 0) return;
      const message = `${looser} ${looser === 1 ? 'change lets' : 'changes let'} more pass`;
      throw new CommandFailure(message, exitCodes.unhealthy);
    });
}

interface Compared {
  readonly old: string;
  readonly next: string | undefined;
  readonly options: DiffOptions;
}

/** The files of both sides; one alone is compared with the objects in force. */
async function readBoth(
  environment: Environment,
  { old, next, options }: Compared,
): Promise<readonly [readonly Source[], readonly Source[]]> {
  const files = await readSources([old], environment.readInput);
  if (next !== undefined) return [files, await readSources([next], environment.readInput)];
  const client = await connectXds(toSource(environment, options));
  requireValid(loadPolicies(files));
  return [await readLive(client, files), files];
}

/** @throws CommandFailure with the problems of the files */
function describe(files: readonly Source[]): readonly Statement[] {
  return describeFiles(requireValid(loadPolicies(files)));
}

const signs = { added: '+', removed: '-', changed: '~' } as const;
const colors = { added: 'green', removed: 'red', changed: 'cyan' } as const;
const effectColors = { stricter: 'yellow', looser: 'red', unknown: 'dim' } as const;

function printChanges(terminal: Terminal, changes: readonly Change[]): void {
  if (changes.length === 0) terminal.warn('The policies mean the same.');
  let subject: string | undefined;
  for (const one of changes) {
    if (one.subject !== subject) terminal.print(`${style(terminal, 'bold', escapeControls(one.subject))}\n`);
    ({ subject } = one);
    terminal.print(formatChange(terminal, one));
  }
}

function formatChange(terminal: Terminal, { part, name, change, effect, before, after }: Change): string {
  const place = [part, name].filter((text) => text !== '').join(', ') || 'all';
  const values = [before, after].filter((text) => text !== undefined).join(' → ');
  const text = escapeControls(`${place}: ${values}`);
  const line = style(terminal, colors[change], `  ${signs[change]} ${text}`);
  return `${line}${effect === 'unknown' ? '' : `  ${style(terminal, effectColors[effect], effect)}`}\n`;
}
