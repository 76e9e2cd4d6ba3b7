import { text } from 'node:stream/consumers';
import { createLogger } from '@tollgate/kit/logger';
import type { Environment, Setting } from '@tollgate/kit/settings';
import { scheduleByTimer } from '@tollgate/kit/time';
import { attributeText, type CallerIdentity, callerAttributeNames } from '@tollgate/policies/decide/caller';
import { algorithmNames } from '@tollgate/policies/routes-file/algorithms';
import { emptyMapping } from '@tollgate/policies/routes-file/claim-mapping';
import type { IssuerRule } from '@tollgate/policies/routes-file/issuer';
import { givenValue } from '../config/builders.ts';
import { settingsSpec } from '../config/settings.ts';
import type { KnownCaller } from '../ext-authz/identity-headers.ts';
import { trustIssuers } from '../ext-authz/issuer-rules.ts';
import { loadRouteRules } from '../ext-authz/rules-file.ts';
import { type LoadedKeys, type LoadOptions, loadKeys } from '../issuers/discovery.ts';
import { TokenIntrospection } from '../issuers/introspection.ts';
import { describe } from '../issuers/issuer-keys.ts';
import { Issuers } from '../issuers/issuers.ts';
import { clusterAccess } from '../issuers/kubernetes.ts';
import { decodeJwt } from '../issuers/verify.ts';
import type { Command } from './arguments.ts';
import { readEnvironment } from './load-settings.ts';
import { formatTable } from './routes.ts';

/** Longer than any request of the gateway waits. */
const timeoutMs = 30_000;

/**
 * `issuers check`: prints what issuers publish, and why a token on standard input is accepted or
 * not. Exits with 1 if keys cannot be loaded or the token is rejected.
 */
export const checkIssuersCommand: Command = async ({ environmentFiles, args, flags }) => {
  const [url] = args;
  if ((url === undefined) === (flags.file === undefined)) {
    process.stderr.write('name either an issuer or, with --file, route rules\n');
    process.exitCode = 2;
    return;
  }
  const env = await readEnvironment(environmentFiles);
  const token = process.stdin.isTTY ? '' : (await text(process.stdin)).trim();
  const rules =
    flags.file === undefined
      ? [ruleOf(url ?? '', flags.aud ?? findAudiences(token))]
      : await readRules(flags.file);
  if (rules === undefined) return;
  const loadOptions = readLoadOptions(env);
  for (const rule of rules) await printIssuer(rule, loadOptions);
  if (token === '') return;
  if (flags.file === undefined && flags.aud === undefined)
    process.stdout.write('The audience of the token is not checked: name yours with --aud.\n');
  await printToken(token, {
    rules,
    loadOptions,
    defaultPlan: readSetting(settingsSpec.extAuthzDefaultPlan, env),
  });
};

function ruleOf(issuer: string, audiences: string | readonly string[]): IssuerRule {
  const definition = {
    name: 'issuer',
    issuer,
    audiences: [audiences].flat(),
    algorithms: algorithmNames,
    tokenType: 'access' as const,
    isKubernetes: false,
    ...{
      discovery: undefined,
      jwksUri: undefined,
      tenants: undefined,
      caFile: undefined,
      introspection: undefined,
    },
  };
  return { definition, mapping: emptyMapping, kinds: {}, isPrefixed: true };
}

/** Audiences of the token itself, for which the other checks are made. */
function findAudiences(token: string): readonly string[] {
  return [decodeJwt(token)?.claims.aud].flat().filter((name) => typeof name === 'string');
}

async function readRules(file: string): Promise<readonly IssuerRule[] | undefined> {
  const loaded = await loadRouteRules(file, {
    canLimit: true,
    hasOrganizations: true,
    hasClients: true,
  });
  const problems = !loaded.ok
    ? loaded.problems
    : loaded.rules.issuers.length === 0
      ? [`${file} has no issuers`]
      : undefined;
  if (loaded.ok && problems === undefined) return loaded.rules.issuers;
  process.stderr.write(`${problems?.join('\n')}\n`);
  process.exitCode = 1;
  return undefined;
}

function readLoadOptions(env: Environment): LoadOptions {
  const {
    extAuthzIssuerPrivateHosts,
    kubernetesServiceHost,
    kubernetesServicePort,
    extAuthzServiceAccountFolder,
  } = settingsSpec;
  return {
    privateHosts: readSetting(extAuthzIssuerPrivateHosts, env),
    cluster: clusterAccess({
      kubernetesServiceHost: readSetting(kubernetesServiceHost, env),
      kubernetesServicePort: readSetting(kubernetesServicePort, env),
      extAuthzServiceAccountFolder: readSetting(extAuthzServiceAccountFolder, env),
    }),
  };
}

/** One setting, whether or not the others are valid. @throws Error if it is invalid itself. */
function readSetting<T>(setting: Setting<T>, env: Environment): T {
  const given = givenValue(setting, env);
  const value = given === undefined ? setting.fallback?.value : setting.parse(given);
  if (value === undefined) throw new Error(`${setting.env}: expected ${setting.form}`);
  return value;
}

async function printIssuer({ definition }: IssuerRule, loadOptions: LoadOptions): Promise<void> {
  const loaded = await loadKeys(definition, loadOptions).catch((error: unknown) => {
    process.stdout.write(`${definition.name}: ${describe(error)}\n`);
    process.exitCode = 1;
  });
  if (loaded) process.stdout.write(formatKeys(definition.name, loaded));
}

function formatKeys(name: string, { issuer, jwksUri, keys, ignored }: LoadedKeys): string {
  const rows = keys.map(({ kid = '-', kty, crv, alg = 'any' }) => [kid, crv ?? kty, alg, 'verifies tokens']);
  const others = ignored.map(({ kid, reason }) => [kid || '-', '-', '-', `ignored: ${reason}`]);
  const table = formatTable([['KID', 'TYPE', 'ALGORITHM', 'USE'], ...rows, ...others]);
  return `${name}: ${issuer}\nkeys of ${jwksUri}\n${table}`;
}

interface TokenCheck {
  readonly rules: readonly IssuerRule[];
  readonly loadOptions: LoadOptions;
  readonly defaultPlan: string;
}

/** Verifies the token as the gateway does. */
async function printToken(token: string, { rules, loadOptions, defaultPlan }: TokenCheck): Promise<void> {
  const logger = createLogger({ level: 'fatal', format: 'json', destination: { write: () => undefined } });
  const { privateHosts } = loadOptions;
  const shared = { nowMs: Date.now, logger };
  const issuers = new Issuers<KnownCaller>({
    ...shared,
    load: (definition) => loadKeys(definition, loadOptions),
    introspection: new TokenIntrospection({ ...shared, privateHosts }),
    schedule: scheduleByTimer,
    metrics: undefined,
  });
  issuers.replace(trustIssuers(rules, { extAuthzDefaultPlan: defaultPlan }));
  issuers.start();
  const result = await issuers.verify(token, timeoutMs);
  issuers.stop();
  if (result?.ok) {
    process.stdout.write(`The token is accepted: ${formatCaller(result.caller.identity)}\n`);
    return;
  }
  const reason =
    result === undefined
      ? `its iss is not an issuer of these: ${decodeJwt(token)?.claims.iss ?? 'it is not a JWT'}`
      : 'unavailable' in result
        ? result.unavailable
        : result.reason;
  process.stdout.write(`The token is rejected: ${reason}\n`);
  process.exitCode = 1;
}

function formatCaller(caller: CallerIdentity): string {
  const names = [...callerAttributeNames, ...Object.keys(caller.claims)];
  return names
    .map((name) => ({ name, value: attributeText(caller, name) }))
    .filter(({ value }) => value !== '')
    .map(({ name, value }) => `${name}=${value}`)
    .join(', ');
}
