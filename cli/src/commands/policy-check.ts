import { kindNames } from '@tollgate/policies/files/documents';
import { type Finding, formatFinding } from '@tollgate/policies/files/finding';
import { type LoadedPolicies, loadPolicies } from '@tollgate/policies/files/load';
import type { Command } from 'commander';
import { CommandFailure, exitCodes } from '../failure.ts';
import { printJson, style, type Terminal } from '../output/terminal.ts';
import { readSources } from '../policies/sources.ts';
import { readTests } from '../policy-tests/read.ts';
import { type Environment, type LocalOptions, localCommand } from './command.ts';

/** `tollgate policy check`: whether the services would accept the files. */
export function checkCommand({ terminal, readInput }: Environment): Command {
  return localCommand('check', 'Find what is wrong with policies, limits, routes files and tests.', [
    'tollgate policy check policies/',
    'tollgate policy check policy.yaml limits.yaml --json',
    'kubectl get accesspolicies -A -o yaml | tollgate policy check -',
  ])
    .exitsWithFinding('a file has a problem')
    .argument('<files...>', 'Files, folders, or - for standard input.')
    .action(async (paths: readonly string[], options: LocalOptions) => {
      const loaded = loadPolicies(await readSources(paths, readInput));
      const ofTests = loaded.tests.map(readTests).flatMap((read) => (read.ok ? [] : read.findings));
      const findings = [...loaded.findings, ...ofTests];
      const problems = findings.filter(({ severity }) => severity === 'problem');
      if (loaded.counts.size === 0 && problems.length === 0)
        throw new CommandFailure(`no policies, limits or routes files in ${paths.join(', ')}`);
      if (options.json) printJson(terminal, { ok: problems.length === 0, findings });
      else for (const finding of findings) printFinding(terminal, finding);
      if (problems.length > 0)
        throw new CommandFailure(
          `${problems.length} ${problems.length === 1 ? 'problem' : 'problems'}`,
          exitCodes.unhealthy,
        );
      if (!options.json) terminal.print(`ok: ${describeCounts(loaded)}\n`);
    });
}

function printFinding(terminal: Terminal, finding: Finding): void {
  const color = finding.severity === 'problem' ? 'red' : 'yellow';
  terminal.print(`${style(terminal, color, formatFinding(finding))}\n`);
}

function describeCounts({ counts, limits }: LoadedPolicies): string {
  const kinds = [...counts].map(([kind, count]) => `${count} ${kindNames[kind][count === 1 ? 0 : 1]}`);
  return [...kinds, `${limits.ruleCount} ${limits.ruleCount === 1 ? 'limit' : 'limits'}`].join(', ');
}
