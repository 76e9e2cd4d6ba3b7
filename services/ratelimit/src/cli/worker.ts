import { buildApp } from '../app.ts';
import { SupervisorLink } from '../workers/supervisor-link.ts';
import { startProcess } from './start.ts';

// Started by the supervisor, with the number of the worker.
const [worker] = process.argv.slice(2);
await startProcess(
  async ({ settings, logger }) => {
    const { lifecycle } = await buildApp(settings, {
      logger,
      nowMs: Date.now,
      random: Math.random,
      output: process.stdout,
      warmUp: true,
      supervisor: new SupervisorLink(process),
    });
    return lifecycle;
  },
  { fields: { worker: Number(worker) } },
);
