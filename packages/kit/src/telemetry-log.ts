import type { Logger } from './logger.ts';

/** Writes what the OpenTelemetry SDK has to say of itself to the log, at its own levels. Process-wide, as that log is. */
export async function logTelemetrySdk(logger: Logger): Promise<void> {
  const { DiagLogLevel, diag } = await import('@opentelemetry/api');
  const log = logger.child({ component: 'telemetry SDK' });
  diag.setLogger(
    {
      error: (text) => log.error({ text }, 'from the SDK'),
      warn: (text) => log.warn({ text }, 'from the SDK'),
      info: (text) => log.info({ text }, 'from the SDK'),
      debug: (text) => log.debug({ text }, 'from the SDK'),
      verbose: (text) => log.trace({ text }, 'from the SDK'),
    },
    { logLevel: DiagLogLevel.ALL, suppressOverrideMessage: true },
  );
}
