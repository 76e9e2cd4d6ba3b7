import { Gauge, type Registry } from 'prom-client';
import type { LimiterClient } from '../domain/limiter-client.ts';

/**
 * Shows how many of the connected limiters enforce older rules, because they rejected the
 * latest.
 */
export function measureLimiters(
  clients: { all(): Iterable<Pick<LimiterClient, 'rejection'>> },
  registry: Registry,
): void {
  new Gauge({
    name: 'tollgate_xds_rejecting_limiters',
    help: 'Connected limiters that rejected the configuration sent last, and enforce the one before it.',
    registers: [registry],
    collect() {
      let rejecting = 0;
      for (const { rejection } of clients.all()) if (rejection !== undefined) rejecting += 1;
      this.set(rejecting);
    },
  });
}
