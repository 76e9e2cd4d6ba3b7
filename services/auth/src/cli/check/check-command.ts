import { createLogger } from '@tollgate/kit/logger';
import type { Environment } from '@tollgate/kit/settings';
import { loadRouteRules } from '../../authz-rules/route-rules-file.ts';
import { givenValue } from '../../settings/given-value.ts';
import { withoutServiceLinks } from '../../settings/service-links.ts';
import { settingWarnings } from '../../settings/setting-warnings.ts';
import { readSettings, type Settings, settingsSpec } from '../../settings/settings.ts';
import { openSigningKeys } from '../../tokens/signing-key-source.ts';
import { readEnvironment, readVariables } from '../load-settings.ts';
import type { Command } from '../run-command.ts';
import { inspectDatabase } from './inspect-database.ts';
import { type CheckReport, type Finding, formatReport } from './report.ts';
import { settingDifferences } from './setting-differences.ts';

/** `check`: reports on an environment and a database of GoTrue. Exits with 1 if the server would not start. */
export const checkCommand: Command = async ({ environmentFiles, flags }) => {
  const file = flags['env-file'];
  let env: Environment;
  try {
    const given = file === undefined ? await readEnvironment(environmentFiles) : await readVariables(file);
    env = withDatabase(withoutServiceLinks(given), flags['database-url']);
  } catch (error) {
    process.stderr.write(`${messageOf(error)}\n`);
    process.exitCode = 1;
    return;
  }
  const report = await check(env);
  process.stdout.write(flags.json === true ? `${JSON.stringify(report, null, 2)}\n` : formatReport(report));
  process.exitCode = report.wouldStart ? 0 : 1;
};

/** In place of the database that the environment names, by whichever name. */
function withDatabase(env: Environment, databaseUrl: string | undefined): Environment {
  if (databaseUrl === undefined) return env;
  const { env: main, aliases } = settingsSpec.databaseUrl;
  const others = Object.entries(env).filter(([name]) => name !== main && !aliases.includes(name));
  return { ...Object.fromEntries(others), [main]: databaseUrl };
}

async function check(env: Environment): Promise<CheckReport> {
  const read = readSettings(env);
  const problems = read.ok ? await fileProblems(read.settings) : read.problems.map(problemFinding);
  const inspected = await inspectDatabase({
    databaseUrl: givenValue(settingsSpec.databaseUrl, env) ?? '',
    dbNamespace: givenValue(settingsSpec.dbNamespace, env) ?? settingsSpec.dbNamespace.fallback?.value ?? '',
    keyIds: read.ok ? keyIdsOf(read.settings) : [],
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
    return { subject: variable, text: 'identity providers are not served yet: sign-in with it is refused' };
  if (kind === 'unknown')
    return {
      subject: variable,
      text: meant === undefined ? 'unknown' : `unknown; perhaps ${meant} is meant`,
    };
  return { subject: variable, text: detail ?? 'accepted without effect' };
}

/** What settings name, and a start reads. */
async function fileProblems(settings: Settings): Promise<Finding[]> {
  const found: Finding[] = [];
  const silent = createLogger({ level: 'fatal', format: 'json', destination: { write: () => undefined } });
  await openSigningKeys(settings, { logger: silent }).catch((error: unknown) => {
    found.push({ subject: settingsSpec.jwtKeysFile.env, text: messageOf(error) });
  });
  const { extAuthzRoutesFile } = settings;
  if (settings.extAuthzEnabled && extAuthzRoutesFile !== '') {
    const loaded = await loadRouteRules(extAuthzRoutesFile);
    const text = loaded.ok ? '' : loaded.problems.join('; ');
    if (text !== '') found.push({ subject: settingsSpec.extAuthzRoutesFile.env, text });
  }
  return found;
}

function keyIdsOf(settings: Settings): string[] {
  return [settings.dbEncryptionKeyId, ...Object.keys(settings.dbEncryptionDecryptionKeys)];
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
