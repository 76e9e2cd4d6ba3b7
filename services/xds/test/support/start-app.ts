import { formatSettingProblems } from '@tollgate/kit/settings';
import { StartReport } from '@tollgate/kit/start-report';
import type { Test } from 'tap';
import { type App, buildApp } from '../../src/app.ts';
import { readSettings, settingsSpec } from '../../src/config/settings.ts';
import type { Context } from '../../src/context.ts';
import { recordingLogger } from './recording-logger.ts';

/** The whole service, with the lines of its log. */
export interface TestApp extends App {
  readonly lines: readonly Record<string, unknown>[];
}

/** Starts it on free ports; it is stopped when the test ends. */
export async function startApp(
  t: Test,
  env: Readonly<Record<string, string>>,
  { nowMs = Date.now }: Partial<Pick<Context, 'nowMs'>> = {},
): Promise<TestApp> {
  const variables = {
    XDS_GRPC_HOST: '127.0.0.1',
    XDS_GRPC_PORT: '0',
    XDS_ADMIN_HOST: '127.0.0.1',
    XDS_ADMIN_PORT: '0',
    DRAIN_TIMEOUT: '1s',
    ...env,
  };
  const read = readSettings(variables);
  if (!read.ok) throw new Error(formatSettingProblems(read.problems));
  const sources = { env: variables };
  const report = new StartReport({ service: 'xds', version: '0.0.0', spec: settingsSpec, sources });
  const { logger, lines } = recordingLogger(report.readLine);
  const app = await buildApp(read.settings, { logger, nowMs, report });
  t.teardown(() => app.lifecycle.stop('end of the test'));
  await app.lifecycle.start();
  return { ...app, lines };
}
