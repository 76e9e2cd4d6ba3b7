import { describeResponse } from '@tollgate/policies/read/access-log';
import { explain, formatExplanation } from '@tollgate/rules/explain';
import type { Command } from 'commander';
import { connectLimiters } from '../connection/connect.ts';
import { readDescriptor } from '../descriptor.ts';
import { askFiles, askServer, readLimits } from '../explain/ask.ts';
import { printExplanation } from '../explain/print.ts';
import { type Question, readQuestion } from '../explain/question.ts';
import { CommandFailure } from '../failure.ts';
import { printJson } from '../output/terminal.ts';
import { type CommonOptions, command, type Environment, toSource } from './command.ts';
import { showCounters } from './peek.ts';

interface ExplainOptions extends CommonOptions {
  readonly as?: string;
  readonly attributes?: readonly string[];
  readonly credentialStdin?: true;
  readonly header?: readonly string[];
  readonly address?: string;
  readonly policy?: string;
  readonly host?: string;
  readonly policies?: readonly string[];
}

/** `tollgate explain`: why a request is allowed or denied, and which limits count it. */
export function explainCommand(environment: Environment): Command {
  return command('explain', 'Explain how a request or a descriptor is decided. Counts nothing.', [
    'tollgate explain GET https://api.example.com/orders/1 --as user:8fba2b4c-1a5b-4bd0-9c6b-2c8f8a3a1111',
    'tollgate explain GET https://api.example.com/orders/1 --credential-stdin < token',
    'kubectl logs deploy/envoy | tail -1 | tollgate explain -',
    'tollgate explain shop user=ann',
    'tollgate explain GET https://api.example.com/ --as user:ann --attributes plan=pro --policies policies/',
  ])
    .argument(
      '<question...>',
      'A method and a URL, a domain and descriptors, or a line of the access log of Envoy.',
    )
    .option('--as <caller>', 'Caller: user:<id>, key:<id> or client:<id>. Default: no credential.')
    .option(
      '--attributes <values...>',
      'Attributes of the caller, such as assurance=AAL2 scopes=orders.read.',
    )
    .option('--credential-stdin', 'Read an access token or API key from standard input.')
    .option('--header <headers...>', 'Headers of the request, as name: value.')
    .option('--address <address>', 'IP address of the client.')
    .option('--policy <name>', 'namespace/name of the policy to apply instead of the one that is found.')
    .option('--host <host>', 'Host of the request, for a line of an access log without one.')
    .option('--policies <files...>', 'Explain files and folders instead of the services of the context.')
    .action(async (args: readonly string[], options: ExplainOptions) => {
      const isPiped = args.length === 1 && args[0] === '-';
      if (isPiped && options.credentialStdin)
        throw new CommandFailure('standard input is either the line of the log or the credential');
      const question = readQuestion(isPiped ? [await environment.readInput()] : args, options.host);
      return question.kind === 'request'
        ? explainRequest(environment, question, options)
        : explainDescriptors(environment, question, options);
    });
}

async function explainRequest(
  environment: Environment,
  { method, url, logged }: Extract<Question, { kind: 'request' }>,
  options: ExplainOptions,
): Promise<void> {
  const { terminal, readInput } = environment;
  const { policies, policy, address = logged?.address, json, credentialStdin, header = [] } = options;
  const request = { method, url, address, policy, headers: Object.fromEntries(header.map(readHeader)) };
  if (policies !== undefined && credentialStdin)
    throw new CommandFailure('files do not verify credentials: use --as user:<id> and --attributes');
  const credential = credentialStdin ? (await readInput()).trim() : undefined;
  const answer =
    policies === undefined
      ? await askServer(toSource(environment, options), request, { ...options, credential })
      : await askFiles(policies, request, options);
  if (json) return printJson(terminal, answer.json);
  printExplanation(terminal, `${method} ${url}`, answer.explanation);
  if (logged === undefined) return;
  const { status } = answer.explanation;
  const isSame = logged.status === status || (status < 300 && (logged.status ?? 0) < 400);
  terminal.warn(
    `The response in the log: ${describeResponse(logged)}.${isSame ? '' : ' The caller, the counters or the policy were others than now: --as says the caller.'}`,
  );
}

/** @throws CommandFailure */
function readHeader(text: string): readonly [string, string] {
  const [, name = '', value = ''] = /^([\w!#$%&'*+.^`|~-]+):[ \t]*(.*)$/.exec(text) ?? [];
  if (name === '') throw new CommandFailure(`--header is name: value, not ${text}`);
  return [name, value];
}

async function explainDescriptors(
  environment: Environment,
  { domain, descriptors: texts }: Extract<Question, { kind: 'descriptors' }>,
  options: ExplainOptions,
): Promise<void> {
  const { terminal } = environment;
  const { json, policies } = options;
  const descriptors = texts.map((text) => ({ entries: readDescriptor(text) }));
  if (policies !== undefined) {
    const explanation = explain(await readLimits(policies), { domain, descriptors });
    if (json) printJson(terminal, explanation);
    else terminal.print(`${formatExplanation(explanation)}\n`);
    return;
  }
  const [{ client }] = await connectLimiters(toSource(environment, options));
  await showCounters(environment, client, { domain, descriptors, ...(json && { json }) });
}
