import { getErrorMessage } from '@tollgate/kit/errors';
import { createLogger } from '@tollgate/kit/logger';
import { type Environment, formatSettingProblems, type Setting } from '@tollgate/kit/settings';
import { givenValue } from '../config/builders.ts';
import { readSettings, type Settings, settingsSpec } from '../config/settings.ts';
import { incompleteSettings, settingWarnings, withoutServiceLinks } from '../config/warnings.ts';
import { loadRouteRules } from '../ext-authz/rules-file.ts';
import { tokenIssuer } from '../keys/jwt.ts';
import { SigningKeySource } from '../keys/key-source.ts';
import type { Command } from './arguments.ts';
import { evaluateAsvs, formatAsvs } from './asvs.ts';
import { inspectDatabase } from './inspect-database.ts';
import { readEnvironment, readVariables } from './load-settings.ts';

/** One line of the report. Contains no secrets. */
export interface Finding {
  readonly subject: string;
  readonly text: string;
}

/** The state of a database. */
export interface DatabaseReport {
  /** Names the database, without the password. */
  readonly where: string;
  readonly server: string;
  readonly schema: string;
  readonly tollgateHasRun: boolean;
  /** Empty if GoTrue has not run. */
  readonly latestMigrationOfGotrue: string;
  readonly pendingMigrations: readonly string[];
  /** Tables and `table.column` that the pending migrations add. */
  readonly adds: readonly string[];
  /** Counts of rows that matter to a migration from GoTrue. */
  readonly rows: readonly Finding[];
}

interface CheckReport {
  readonly wouldStart: boolean;
  readonly stops: readonly Finding[];
  readonly withoutEffect: readonly Finding[];
  readonly differences: readonly Finding[];
  /** Undefined if no database is set or available. */
  readonly database?: DatabaseReport;
}

/** Writes a report for the terminal. */
function formatReport(report: CheckReport): string {
  const { stops, database } = report;
  const summary = report.wouldStart
    ? 'The server would start.'
    : `The server would not start: ${stops.length === 1 ? '1 problem' : `${stops.length} problems`}.`;
  return [
    summary,
    ...section('Prevents the start', stops),
    ...section('Has no effect', report.withoutEffect),
    ...section('Works differently', report.differences),
    ...(database === undefined ? [] : databaseSection(database)),
    '',
    'See docs/coming-from-gotrue.md for all differences and the migration steps.',
    '',
  ].join('\n');
}

function section(title: string, findings: readonly Finding[]): string[] {
  return findings.length === 0
    ? []
    : ['', title, ...findings.map(({ subject, text }) => `  ${subject}: ${text}`)];
}

function databaseSection(database: DatabaseReport): string[] {
  const { latestMigrationOfGotrue: latest, pendingMigrations, adds } = database;
  const history = [
    `schema ${database.schema}`,
    ...(latest === '' ? [] : [`at migration ${latest} of GoTrue${formatDate(latest)}`]),
    database.tollgateHasRun ? 'Tollgate has run on it' : 'Tollgate has not run on it yet',
  ];
  return [
    '',
    `${database.where} (${database.server}): ${history.join(', ')}`,
    `  pending migrations: ${list(pendingMigrations)}`,
    `  which add: ${list(adds)}`,
    ...database.rows.map(({ subject, text }) => `  ${subject}: ${text}`),
  ];
}

/** Migration names start with their date. */
function formatDate(migration: string): string {
  const [, year, month, day] = /^(\d{4})(\d\d)(\d\d)\d{6}$/.exec(migration) ?? [];
  return year === undefined ? '' : ` (${year}-${month}-${day})`;
}

function list(names: readonly string[]): string {
  return names.length === 0 ? 'none' : names.join(', ');
}

/**
 * `check`: reports on an environment and a database of GoTrue. Exits with 1 if the server would not
 * start.
 */
export const checkCommand: Command = async ({ environmentFiles, flags }) => {
  const file = flags['env-file'];
  let env: Environment;
  try {
    const given = file === undefined ? await readEnvironment(environmentFiles) : await readVariables(file);
    env = withDatabase(withoutServiceLinks(given), flags['database-url']);
  } catch (error) {
    process.stderr.write(`${getErrorMessage(error)}\n`);
    process.exitCode = 1;
    return;
  }
  if (flags.asvs === true) return printAsvs(env, flags.json === true);
  const report = await check(env);
  process.stdout.write(flags.json === true ? `${JSON.stringify(report, null, 2)}\n` : formatReport(report));
  process.exitCode = report.wouldStart ? 0 : 1;
};

/** `check --asvs`. Exits with 1 if the settings are invalid or a requirement fails. */
function printAsvs(env: Environment, asJson: boolean): void {
  const read = readSettings(env);
  if (!read.ok) {
    process.stderr.write(`${formatSettingProblems(read.problems)}\n`);
    process.exitCode = 1;
    return;
  }
  const results = evaluateAsvs(read.settings);
  process.stdout.write(
    asJson ? `${JSON.stringify(results, null, 2)}\n` : formatAsvs(results, read.settings.securityProfile),
  );
  process.exitCode = results.some(({ state }) => state === 'fails') ? 1 : 0;
}

/** Replaces the database of the environment. */
function withDatabase(env: Environment, databaseUrl: string | undefined): Environment {
  if (databaseUrl === undefined) return env;
  const { env: main, aliases } = settingsSpec.databaseUrl;
  const others = Object.entries(env).filter(([name]) => name !== main && !aliases.includes(name));
  return { ...Object.fromEntries(others), [main]: databaseUrl };
}

async function check(env: Environment): Promise<CheckReport> {
  const read = readSettings(env);
  const problems = read.ok ? await findFileProblems(read.settings) : read.problems.map(problemFinding);
  const inspected = await inspectDatabase({
    databaseUrl: givenValue(settingsSpec.databaseUrl, env) ?? '',
    dbNamespace: givenValue(settingsSpec.dbNamespace, env) ?? settingsSpec.dbNamespace.fallback?.value ?? '',
    keyIds: read.ok ? getKeyIds(read.settings) : [],
    hasOAuthServer: read.ok && read.settings.oauthServerEnabled,
  });
  const stops = [...problems, ...inspected.stops];
  return {
    wouldStart: stops.length === 0,
    stops,
    withoutEffect: [...settingWarnings(env), ...(read.ok ? incompleteSettings(read.settings) : [])].map(
      warningFinding,
    ),
    differences: settingDifferences(env),
    ...(inspected.database && { database: inspected.database }),
  };
}

function problemFinding(problem: { variable: string; value?: string; expected: string }): Finding {
  const { variable, value, expected } = problem;
  return {
    subject: variable,
    text: `${value === undefined ? 'not set' : `is ${value}`}, expected ${expected}`,
  };
}

function warningFinding({
  variable,
  kind,
  detail,
  meant,
}: ReturnType<typeof settingWarnings>[number]): Finding {
  if (kind === 'provider not served')
    return {
      subject: variable,
      text: 'this identity provider is not supported: sign-in with it is rejected',
    };
  if (kind === 'unknown')
    return {
      subject: variable,
      text: meant === undefined ? 'unknown' : `unknown, did you mean ${meant}?`,
    };
  return { subject: variable, text: detail ?? 'accepted without effect' };
}

/** Problems of files that the start reads. */
async function findFileProblems(settings: Settings): Promise<Finding[]> {
  const found: Finding[] = [];
  const silent = createLogger({ level: 'fatal', format: 'json', destination: { write: () => undefined } });
  await SigningKeySource.open(settings, { logger: silent }).catch((error: unknown) => {
    found.push({ subject: settingsSpec.jwtKeysFile.env, text: getErrorMessage(error) });
  });
  const { extAuthzRoutesFile } = settings;
  if (settings.extAuthzEnabled && extAuthzRoutesFile !== '') {
    const canLimit = settings.extAuthzRateLimitAddress !== '';
    const loaded = await loadRouteRules(extAuthzRoutesFile, {
      canLimit,
      tokenIssuer: tokenIssuer(settings),
      hasApiKeys: settings.apiKeysEnabled,
      hasOrganizations: settings.organizationsEnabled,
      hasClients: settings.oauthServerEnabled,
    });
    const text = loaded.ok ? '' : loaded.problems.join('; ');
    if (text !== '') found.push({ subject: settingsSpec.extAuthzRoutesFile.env, text });
  }
  return found;
}

function getKeyIds(settings: Settings): string[] {
  return [settings.dbEncryptionKeyId, ...Object.keys(settings.dbEncryptionDecryptionKeys)];
}

interface Difference {
  readonly setting: Setting<unknown>;
  /** Whether a value, or none, works differently. */
  readonly applies: (value: string | undefined, env: Environment) => boolean;
  readonly text: string;
  /** GoTrue does not have the setting. */
  readonly isOurs?: true;
}

const isUnset = (value: string | undefined): boolean => value === undefined;
const isZero = (value: string | undefined): boolean => value !== undefined && /^0+[a-z]*$/.test(value);
const isEmpty = (value: string | undefined): boolean => value === undefined || value === '';

const canIdentifyClients = [
  settingsSpec.trustedProxies,
  settingsSpec.rateLimitHeader,
  settingsSpec.forwardedForEnabled,
];

const differences: readonly Difference[] = [
  {
    setting: settingsSpec.dbSharedWithGotrue,
    applies: (value) => !/^(?:1|t|true)$/i.test(value ?? ''),
    text: 'not set: GoTrue cannot check new passwords (unless it knows argon2id) and codes; set it to true while both run on one database',
    isOurs: true,
  },
  {
    setting: settingsSpec.smtpHost,
    applies: isEmpty,
    text: 'not set: no mail is sent, as with GoTrue; requests that would send one succeed',
  },
  {
    setting: settingsSpec.trustedProxies,
    applies: (_value, env) => canIdentifyClients.every((setting) => isEmpty(givenValue(setting, env))),
    text: 'not set: X-Forwarded-For is not believed, so that sessions and the audit log have the address of the proxy; GoTrue believes it from everyone',
    isOurs: true,
  },
  {
    setting: settingsSpec.refreshTokenReuseIntervalMs,
    applies: isUnset,
    text: 'not set: 10 s, which is 0 with GoTrue; a refresh whose reply was lost can be repeated',
  },
  {
    setting: settingsSpec.dbCleanupEnabled,
    applies: isUnset,
    text: 'not set: on, which is off with GoTrue; expired rows are removed',
  },
  {
    setting: settingsSpec.jwtDefaultGroupName,
    applies: isUnset,
    text: 'not set: new users have the role authenticated; with GoTrue none',
  },
  {
    setting: settingsSpec.jwtAdminRoles,
    applies: isEmpty,
    text: 'not set: svc_admin may call /admin as well',
  },
  {
    setting: settingsSpec.smtpMaxFrequencyMs,
    applies: isUnset,
    text: 'not set: 15 minutes between confirmations, 60 s between links; with GoTrue 60 s for all',
  },
  {
    setting: settingsSpec['mailTemplate:CONFIRMATION'],
    applies: isEmpty,
    text: 'not set: the built-in texts of mails are not those of GoTrue',
  },
  { setting: settingsSpec.smtpMaxFrequencyMs, applies: isZero, text: '0: no spacing; with GoTrue 60 s' },
  { setting: settingsSpec.smsMaxFrequencyMs, applies: isZero, text: '0: no spacing; with GoTrue 60 s' },
  {
    setting: settingsSpec.rateLimitHeader,
    applies: (value) => !isEmpty(value),
    text: 'limits are shared by all replicas, and their burst is the limit itself; with GoTrue each process counts, with bursts of 30',
  },
];

/** Read with this prefix here, and ignored by GoTrue, which reads the name without it. */
const ignoredByGotrue = ['API_EXTERNAL_URL', 'DB_NAMESPACE', 'REQUEST_ID_HEADER', 'PORT', 'DATABASE_URL'];

/** Settings of GoTrue that change the behavior here, by the names that are set. */
function settingDifferences(env: Environment): Finding[] {
  const known = differences
    .filter(({ setting, applies }) => applies(givenValue(setting, env), env))
    .map(({ setting, text, isOurs }) => ({
      subject: isOurs ? setting.env : settingName(setting, env),
      text,
    }));
  const prefixed = ignoredByGotrue
    .filter((name) => env[`GOTRUE_${name}`] !== undefined)
    .map((name) => ({ subject: `GOTRUE_${name}`, text: `takes effect here; GoTrue reads ${name} only` }));
  return [...known, ...prefixed];
}

/** The name that the operator uses, or that of GoTrue. */
function settingName({ env: main, aliases }: Setting<unknown>, env: Environment): string {
  const names = [main, ...aliases];
  return (
    names.find((name) => env[name] !== undefined) ?? names.find((name) => name.startsWith('GOTRUE_')) ?? main
  );
}
