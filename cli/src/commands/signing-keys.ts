import { type AuthSchemas, unwrap } from '@tollgate/admin-clients/clients';
import {
  addKey,
  findNextStep,
  keyOfSecret,
  type NewKeyAlgorithm,
  newKeyAlgorithms,
  type Rotation,
  type RotationContext,
  retireKeys,
  rotateKeys,
  type StoredKey,
  summarizeKeys,
  toTime,
} from '@tollgate/kit/signing-keys';
import { formatDuration } from '@tollgate/kit/time';
import type { Command } from 'commander';
import { connectAuth } from '../connection/connect.ts';
import { CommandFailure, exitCodes } from '../failure.ts';
import { printTable } from '../output/table.ts';
import { printJson } from '../output/terminal.ts';
import { findSecret, type KeySource, readKeySource, writeKeys } from '../signing-keys/files.ts';
import { parseSecretName } from '../signing-keys/kubernetes.ts';
import { askServer, parseLifetime } from '../signing-keys/server.ts';
import { type CommonOptions, command, type Environment, group, toSource } from './command.ts';

interface StepOptions extends CommonOptions {
  readonly file?: string;
  readonly output?: string;
  readonly emit?: string;
  readonly secret: string;
  readonly tokenLifetime?: string;
  readonly offline?: true;
  readonly force?: true;
}

/** `tollgate signing-keys` */
export function signingKeyCommands(environment: Environment): Command {
  return group('signing-keys', 'Keys that sign access tokens, and their rotation in steps.', [
    statusCommand(environment),
    newCommand(environment),
    rotateCommand(environment),
    retireCommand(environment),
  ]);
}

function statusCommand(environment: Environment): Command {
  const { terminal } = environment;
  return command('status', 'Show the keys of the auth server, and the next step of a rotation.', [
    'tollgate signing-keys status',
    'tollgate signing-keys status --json',
  ]).action(async (options: CommonOptions) => {
    const client = await connectAuth(toSource(environment, options));
    const found = await unwrap(client.GET('/admin/signing-keys'));
    if (options.json) return printJson(terminal, found);
    printTable(terminal, found.keys, {
      columns: {
        KID: ({ kid }) => kid,
        ALGORITHM: ({ algorithm }) => algorithm,
        STATE: ({ state }) => state,
        JWKS: ({ in_jwks: isPublished }) => (isPublished ? 'yes' : 'no'),
        ADDED: ({ added_at: at }) => at,
        REPLACED: ({ replaced_at: at }) => at,
        'LAST VERIFIED': ({ last_verified_at: at }) => at,
      },
      empty: '',
    });
    terminal.print(`\n${describeServer(found)}\n`);
  });
}

function describeServer({
  variable,
  file,
  token_lifetime: lifetime,
  next,
}: AuthSchemas['SigningKeys']): string {
  const wait = next.not_before === undefined ? '' : `, not before ${next.not_before}`;
  return `from ${variable}${file === undefined ? '' : ` ${file}`}; tokens are valid for up to ${formatDuration(lifetime * 1000)}
next: tollgate signing-keys ${next.step}${wait} (${next.reason})`;
}

function stepCommand(name: string, summary: string, examples: readonly string[]): Command {
  return command(name, summary, examples)
    .option(
      '--file <path>',
      'File with the keys, or - for standard input. Default: SVC_JWT_KEYS_FILE, else the value of SVC_JWT_KEYS.',
    )
    .option('--output <path>', 'File to write, with mode 0600, or - for standard output. Default: the file.')
    .option('--emit <form>', 'kubernetes: print the manifest of a Secret instead.')
    .option('--secret <name>', 'Namespace and name of the Secret.', 'tollgate/auth-keys')
    .option(
      '--token-lifetime <duration>',
      'Longest lifetime of a token, such as 1h. Default: that of the auth server of the context.',
    )
    .option('--offline', 'Do not ask the auth server of the context.')
    .option('--force', 'Skip the checks of times and of the auth server: tokens may be rejected.');
}

function newCommand(environment: Environment): Command {
  return stepCommand('new', 'Add a key that does not sign yet, so that all verifiers learn it.', [
    'tollgate signing-keys new --file keys.json',
    'SVC_JWT_SECRET=… tollgate signing-keys new --file keys.json   # the first rotation',
    `${fromSecret} | tollgate signing-keys new --file - --emit kubernetes | kubectl apply -f -`,
  ])
    .option('--alg <algorithm>', `${newKeyAlgorithms.join(', ')}.`, newKeyAlgorithms[0])
    .option('--first', 'There is no key and no SVC_JWT_SECRET whose tokens must stay valid.')
    .action((options: StepOptions & { readonly alg: string; readonly first?: true }) =>
      runStep(environment, options, (keys, context) =>
        addKey(keys.length > 0 ? keys : firstKeys(environment, options), toAlgorithm(options.alg), context),
      ),
    );
}

const fromSecret = "kubectl -n tollgate get secret auth-keys -o jsonpath='{.data.keys\\.json}' | base64 -d";

function rotateCommand(environment: Environment): Command {
  return stepCommand('rotate', 'Sign with the key that new has added.', [
    'tollgate signing-keys rotate --file keys.json',
    `${fromSecret} | tollgate signing-keys rotate --file - --emit kubernetes | kubectl apply -f -`,
  ]).action((options: StepOptions) => runStep(environment, options, rotateKeys));
}

function retireCommand(environment: Environment): Command {
  return stepCommand('retire', 'Remove keys that no longer sign, once their tokens have expired.', [
    'tollgate signing-keys retire --file keys.json',
    'tollgate signing-keys retire 2026-01-01-3f7c91ab --file keys.json --token-lifetime 1h',
  ])
    .argument('[kid]', 'One key. Default: all that rotate has replaced.')
    .action((kid: string | undefined, options: StepOptions) =>
      runStep(environment, options, (keys, context) => retireKeys(keys, kid, context)),
    );
}

/** The keys of a server without JWT_KEYS. @throws CommandFailure */
function firstKeys({ env }: Environment, { first }: { readonly first?: true }): readonly StoredKey[] {
  const secret = findSecret(env);
  if (secret !== undefined) return [keyOfSecret(secret.value, secret.kid)];
  if (first) return [];
  throw new CommandFailure(
    'there are no keys yet. If the auth server signs with SVC_JWT_SECRET, set it here, so that its tokens stay valid; otherwise use --first',
  );
}

/** @throws CommandFailure */
function toAlgorithm(text: string): NewKeyAlgorithm {
  const found = newKeyAlgorithms.find((one) => one === text);
  if (found === undefined) throw new CommandFailure(`--alg must be ${newKeyAlgorithms.join(', ')}`);
  return found;
}

type Change = (keys: readonly StoredKey[], context: RotationContext) => Rotation;

/** Reads the keys, changes them and writes them. Says what to do next. */
async function runStep(environment: Environment, options: StepOptions, change: Change): Promise<void> {
  if (options.emit !== undefined && options.emit !== 'kubernetes')
    throw new CommandFailure('--emit must be kubernetes');
  const source = await readKeySource(environment, options.file);
  const target = findTarget(source, options);
  if (options.json && target === '-')
    throw new CommandFailure('--json prints the result without keys: write the keys to a file with --output');
  const isAsked = !options.offline && !options.force;
  const server = isAsked ? await askServer(toSource(environment, options)) : undefined;
  const lifetimeSeconds = parseLifetime(options.tokenLifetime) ?? server?.lifetimeSeconds;
  const nowSeconds = Math.floor(Date.now() / 1000);
  const changed = change(source.keys, {
    ...{ nowSeconds, lifetimeSeconds, isForced: options.force === true },
    ...{ published: server?.published, signing: server?.signing },
  });
  if (!changed.ok) throw new CommandFailure(changed.problem, exitCodes.failed);
  const secret = options.emit === undefined ? undefined : parseSecretName(options.secret);
  await writeKeys(environment.terminal, changed.keys, { target, secret });
  report(environment, { changed, source, lifetimeSeconds, wasAsked: server !== undefined, options });
}

/** A manifest does not replace the file of keys. */
function findTarget({ path }: KeySource, { output, emit }: StepOptions): string {
  return output ?? (emit === undefined && path !== undefined ? path : '-');
}

interface Report {
  readonly changed: Rotation & { readonly ok: true };
  readonly source: KeySource;
  readonly lifetimeSeconds: number | undefined;
  readonly wasAsked: boolean;
  readonly options: StepOptions;
}

function report(
  { terminal }: Environment,
  { changed, source, lifetimeSeconds, wasAsked, options }: Report,
): void {
  const keys = summarizeKeys(changed.keys);
  const next = findNextStep(keys, lifetimeSeconds);
  const from = next.from === undefined ? undefined : toTime(next.from);
  if (options.json) {
    printJson(terminal, {
      done: changed.done,
      notes: changed.notes,
      keys: keys.map(({ kid, algorithm, state }) => ({ kid, algorithm, state })),
      next: { step: next.step, ...(from !== undefined && { notBefore: from }), reason: next.why },
      serverAsked: wasAsked,
    });
    return;
  }
  const place = source.variable === undefined ? [] : [`set ${source.variable} to the output`];
  const unchecked =
    wasAsked || options.force
      ? []
      : ['not checked with an auth server: make sure that it publishes the keys of this file'];
  const wait =
    from === undefined ? [] : [`wait until ${from} (${next.why}), then run signing-keys ${next.step}`];
  for (const line of [...place, changed.done, ...changed.notes, ...unchecked, ...wait]) terminal.warn(line);
}
