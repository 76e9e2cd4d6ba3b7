import { formatFinding } from '@tollgate/policies/files/finding';
import { loadPolicies } from '@tollgate/policies/files/load';
import { convertToPolicy } from '@tollgate/policies/routes-file/to-policy';
import type { Command } from 'commander';
import { CommandFailure, exitCodes } from '../failure.ts';
import { printJson } from '../output/terminal.ts';
import { readSources } from '../policies/sources.ts';
import { type Environment, type LocalOptions, localCommand } from './command.ts';

interface ConvertOptions extends LocalOptions {
  readonly name: string;
  readonly namespace: string;
  readonly hosts: readonly string[];
}

/** `tollgate policy convert`: a routes file as an AccessPolicy. */
export function convertCommand({ terminal, readInput }: Environment): Command {
  return localCommand('convert', 'Convert a routes file of the auth server to an AccessPolicy.', [
    'tollgate policy convert routes.yaml --namespace shop --name orders --hosts api.example.com > policy.yaml',
  ])
    .exitsWithFinding('the routes file has a problem')
    .argument('<file>', 'The routes file, or - for standard input.')
    .option('--name <name>', 'Name of the policy.', 'routes')
    .option('--namespace <namespace>', 'Namespace of the policy.', 'default')
    .option('--hosts <hosts...>', 'Hosts of the policy.', ['*'])
    .action(async (path: string, { name, namespace, hosts, json }: ConvertOptions) => {
      const { routes, findings } = loadPolicies(await readSources([path], readInput));
      const problem = findings.find(({ severity }) => severity === 'problem');
      if (problem !== undefined) throw new CommandFailure(formatFinding(problem), exitCodes.unhealthy);
      if (routes === undefined)
        throw new CommandFailure(`${path} is no routes file: it needs routes or default`);
      const converted = convertToPolicy(routes.rules, { name, namespace, hosts });
      if (!converted.ok) throw new CommandFailure(converted.problems.join('\n'), exitCodes.unhealthy);
      for (const warning of converted.warnings) terminal.warn(`warning: ${warning}`);
      if (json) printJson(terminal, { manifest: converted.yaml, warnings: converted.warnings });
      else terminal.print(converted.yaml);
    });
}
