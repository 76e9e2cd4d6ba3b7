import { basename, extname, resolve } from 'node:path';
import { type Command, Option } from 'commander';
import { CommandFailure } from '../failure.ts';
import { emitKubernetes } from '../up/emit.ts';
import { loadUpFile, runUp } from '../up/up.ts';
import { bareCommand, type Environment } from './command.ts';

interface UpCommandOptions {
  readonly envoy?: string;
  readonly emit?: 'kubernetes';
  readonly namespace: string;
  readonly name?: string;
  readonly host: readonly string[];
}

const defaultFile = 'tollgate.yaml';

/** `tollgate up`: Envoy and all services on this machine. */
export function upCommand({ terminal, env, interruption }: Environment): Command {
  return bareCommand(
    'up',
    'Run Envoy and all services on this machine, as a file of routes and limits says.',
    [
      'tollgate up',
      'tollgate up shop.yaml --envoy /opt/envoy',
      'tollgate up --emit kubernetes --host api.example.com > policy.yaml',
    ],
  )
    .argument('[file]', 'Upstream, routes and limits. It is loaded again when it changes.', defaultFile)
    .option('--envoy <path>', 'The program. Default: envoy on PATH, else a container.')
    .addOption(
      new Option('--emit <target>', 'Write objects to standard output instead.').choices(['kubernetes']),
    )
    .option('--host <hosts...>', 'With --emit: hosts of the application.', ['localhost'])
    .option('--namespace <name>', 'With --emit: namespace of the objects.', 'default')
    .option('--name <name>', 'With --emit: name of the policy. Default: that of the file.')
    .action(async (file: string, { envoy, emit, host, namespace, name }: UpCommandOptions) => {
      if (emit === 'kubernetes') {
        const options = { name: name ?? basename(file, extname(file)), namespace, hosts: host };
        requireObjectName(options.name, '--name');
        requireObjectName(namespace, '--namespace');
        return terminal.print(emitKubernetes(await loadUpFile(file), options));
      }
      const { PATH: searchPath = '' } = env;
      await runUp({
        ...{ path: file, envoyPath: envoy === undefined ? undefined : resolve(envoy) },
        ...{ searchPath, terminal, signal: interruption() },
      });
    });
}

/** @see RFC 1123 §2.1 @throws CommandFailure */
function requireObjectName(text: string, option: string): void {
  if (!/^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(text))
    throw new CommandFailure(
      `not a name of an object of Kubernetes: ${text}. Set ${option} to lower-case letters, digits and hyphens`,
    );
}
