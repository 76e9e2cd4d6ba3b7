import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

export type ConsoleMetrics = ReturnType<typeof registerMetrics>;

const results = ['succeeded', 'failed'] as const;

/** All metrics of the service. Every series exists from the start. */
export function registerMetrics(registry: Registry, { countSessions }: { countSessions(): number }) {
  const registers = [registry];
  const metrics = {
    signIns: new Counter({
      name: 'tollgate_console_sign_ins_total',
      help: 'Sign-ins that returned from the auth server.',
      labelNames: ['result'],
      registers,
    }),
    requests: new Histogram({
      name: 'tollgate_console_request_duration_seconds',
      help: 'Time of responses, by area of the console.',
      labelNames: ['area'],
      buckets: [0.01, 0.025, 0.05, 0.1, 0.3, 1, 3],
      registers,
    }),
    sessions: new Gauge({
      name: 'tollgate_console_sessions',
      help: 'Sessions in memory.',
      registers,
      collect() {
        this.set(countSessions());
      },
    }),
  };
  for (const result of results) metrics.signIns.inc({ result }, 0);
  return metrics;
}
