import { createLogger } from '@tollgate/kit/logger';
import type { Environment } from '@tollgate/kit/settings';
import { givenValue } from '../config/builders.ts';
import { readSettings, type Settings, settingsSpec } from '../config/settings.ts';
import { settingWarnings, withoutServiceLinks } from '../config/warnings.ts';
import { loadRouteRules } from '../ext-authz/rules-file.ts';
import { SigningKeySource } from '../keys/key-source.ts';
import { inspectDatabase } from './inspect-database.ts';
import { readEnvironment, readVariables } from './load-settings.ts';
import type { Command } from './run-command.ts';
import { settingDifferences } from './setting-differences.ts';

/** One line of the report. Contains no secrets. */
export interface Finding {
  readonly subject: string;
  readonly text: string;
}

/** The state of a database. */
export interface DatabaseReport {
  /** Without the password. */
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
    process.stderr.write(`${getMessage(error)}\n`);
    process.exitCode = 1;
    return;
  }
  const report = await check(env);
  process.stdout.write(flags.json === true ? `${JSON.stringify(report, null, 2)}\n` : formatReport(report));
  process.exitCode = report.wouldStart ? 0 : 1;
};

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
  });
  const stops = [...problems, ...inspected.stops];
  return {
    wouldStart: stops.length === 0,
    stops,
    withoutEffect: settingWarnings(env).map(warningFinding),
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
      text: 'identity providers are not supported yet: sign-in with it is rejected',
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
    found.push({ subject: settingsSpec.jwtKeysFile.env, text: getMessage(error) });
  });
  const { extAuthzRoutesFile } = settings;
  if (settings.extAuthzEnabled && extAuthzRoutesFile !== '') {
    const loaded = await loadRouteRules(extAuthzRoutesFile);
    const text = loaded.ok ? '' : loaded.problems.join('; ');
    if (text !== '') found.push({ subject: settingsSpec.extAuthzRoutesFile.env, text });
  }
  return found;
}

function getKeyIds(settings: Settings): string[] {
  return [settings.dbEncryptionKeyId, ...Object.keys(settings.dbEncryptionDecryptionKeys)];
}

function getMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
