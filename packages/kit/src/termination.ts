import { setTimeout as delay } from 'node:timers/promises';
import type { Health } from './health.ts';
import type { HttpServer } from './http-server.ts';
import type { LifecycleComponent } from './lifecycle.ts';

/**
 * The component that is stopped first: it fails the health check, has HTTP servers close connections after their answers, and gives
 * load balancers `delayMs` to notice before the servers refuse new requests.
 */
export function createTermination(
  health: Health,
  delayMs: number,
  servers: readonly Pick<HttpServer, 'closeAfterAnswers'>[] = [],
): LifecycleComponent {
  const component = health.component('sigterm', { healthy: true });
  return {
    name: 'termination',
    async stop({ signal }) {
      component.set(false);
      for (const server of servers) server.closeAfterAnswers();
      if (delayMs > 0) {
        await delay(delayMs, undefined, { signal }).catch(() => undefined);
      }
    },
  };
}
