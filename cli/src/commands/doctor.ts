import type { Command } from 'commander';
import packageJson from '../../package.json' with { type: 'json' };
import { limitersOf, readContext } from '../connection/connect.ts';
import { requireUrl } from '../connection/inputs.ts';
import { checkEnvoy } from '../doctor/envoy.ts';
import type { Finding } from '../doctor/finding.ts';
import { checkLimiter, checkReady, checkService } from '../doctor/service.ts';
import { checkSettings, type ServiceName, serviceNames } from '../doctor/settings.ts';
import { compareVersions } from '../doctor/version.ts';
import { CommandFailure, exitCodes } from '../failure.ts';
import { printTable } from '../output/table.ts';
import { printJson, type Terminal } from '../output/terminal.ts';
import { type CommonOptions, command, type Environment, toSource } from './command.ts';

interface DoctorOptions extends CommonOptions {
  readonly settings: readonly string[];
  readonly ready: readonly string[];
  readonly xdsUrl?: string;
  readonly consoleUrl?: string;
  readonly envoyAdmin?: string;
}

/** `tollgate doctor`: everything that can be found wrong from here, each with its remedy. */
export function doctorCommand(environment: Environment): Command {
  const { terminal } = environment;
  return command('doctor', 'Find what is wrong with an installation, and what to do about it.', [
    'tollgate doctor',
    'tollgate doctor --settings auth=auth.env ratelimit=limiter.env',
    'tollgate doctor --xds-url http://127.0.0.1:8090 --envoy-admin http://127.0.0.1:9901',
    'tollgate doctor --ready http://127.0.0.1:8080/healthcheck --json',
  ])
    .exitsWithFinding('something is wrong')
    .option('--settings <service=file...>', 'Check variables as the service does: auth, ratelimit, xds.', [])
    .option('--ready <url...>', 'More pages that respond 2xx when a service is ready.', [])
    .option('--xds-url <url>', 'Admin port of the xDS server. Default: that of the context.')
    .option('--console-url <url>', 'Admin port of the console. Default: that of the context.')
    .option('--envoy-admin <url>', 'Admin interface of Envoy: whether it reaches its clusters.')
    .action(async (options: DoctorOptions) => {
      const findings = await runChecks(environment, options);
      if (findings.length === 0)
        throw new CommandFailure(
          'nothing to check: run tollgate context set --help, or name files and URLs (tollgate doctor --help)',
        );
      if (options.json) printJson(terminal, findings);
      else printFindings(terminal, findings);
      const problems = findings.filter(({ ok }) => !ok);
      if (problems.length === 0) return;
      const count = problems.length === 1 ? '1 problem' : `${problems.length} problems`;
      throw new CommandFailure(count, exitCodes.unhealthy);
    });
}

async function runChecks(environment: Environment, options: DoctorOptions): Promise<readonly Finding[]> {
  const { settings, ready, envoyAdmin } = options;
  const context = await readContext(toSource(environment, options));
  const { authUrl, limiterToken, xdsToken } = context;
  const { xdsUrl = context.xdsUrl, consoleUrl = context.consoleUrl } = options;
  for (const url of [...ready, xdsUrl, consoleUrl, envoyAdmin]) if (url !== undefined) requireUrl(url);
  const nowMs = Date.now;
  const common = { nowMs, version: packageJson.version };
  const checks = [
    ...settings.map((text) => checkSettings(...parseSettingsFile(text))),
    ...(authUrl === undefined ? [] : [checkService('auth', authUrl, common)]),
    ...limitersOf(context).map((limiter) => checkLimiter(limiter, { ...common, token: limiterToken })),
    ...(xdsUrl === undefined ? [] : [checkService('xds', xdsUrl, { ...common, token: xdsToken })]),
    ...(consoleUrl === undefined ? [] : [checkService('console', consoleUrl, common)]),
    ...ready.map((url) => checkReady(url, nowMs)),
    ...(envoyAdmin === undefined ? [] : [checkEnvoy(envoyAdmin, nowMs)]),
  ];
  const findings = (await Promise.all(checks)).flat();
  return [...findings, ...compareVersions(findings)];
}

function parseSettingsFile(text: string): [ServiceName, string] {
  const [name = '', ...rest] = text.split('=');
  const service = serviceNames.find((candidate) => candidate === name);
  if (service === undefined || rest.length === 0)
    throw new CommandFailure(
      `not a file of settings: ${text}. Expected auth=FILE, ratelimit=FILE or xds=FILE`,
    );
  return [service, rest.join('=')];
}

function printFindings(terminal: Terminal, findings: readonly Finding[]): void {
  printTable(terminal, findings, {
    columns: {
      STATUS: ({ ok }) => (ok ? 'ok' : 'FAILED'),
      CHECK: ({ check }) => check,
      TARGET: ({ target }) => target,
      DETAIL: ({ detail }) => detail,
      REMEDY: ({ remedy }) => remedy,
    },
    empty: '',
  });
}
