import { stateOfTheWorld } from '@tollgate/ads-client/state-of-the-world';
import { createLogger } from '@tollgate/kit/logger';
import type { CompileOptions } from '@tollgate/rules/compile';
import { awaitUntil } from '@tollgate/testkit/await-until';
import type { Test } from 'tap';
import { StatsRegistry } from '../../src/metrics/registry.ts';
import type { RuleLoad } from '../../src/rules/rule-store.ts';
import { XdsSource, type XdsSourceOptions } from '../../src/rules/xds/xds-source.ts';
import { limitOf } from './rule-folder.ts';

/** A source of one test. */
export interface XdsTestSource {
  /** Every attempt, in order. */
  readonly loads: readonly RuleLoad[];
  readonly stats: StatsRegistry;
  readonly logLines: readonly Readonly<Record<string, unknown>>[];
  /** Pending until the source has started. */
  readonly started: Promise<void>;
  /** Resolves when the last good load has this limit for the key `k` of a domain. */
  inForce(domain: string, requestsPerUnit: number | undefined): Promise<void>;
  /** Resolves with the first line of that message. */
  logged(message: RegExp): Promise<Readonly<Record<string, unknown>>>;
}

/** Starts a source with short pauses; it is closed when the test ends. */
export function followServer(
  t: Test,
  serverUrl: string,
  { client, compile }: Partial<{ client: Partial<XdsSourceOptions['client']>; compile: CompileOptions }> = {},
): XdsTestSource {
  const loads: RuleLoad[] = [];
  const logLines: Record<string, unknown>[] = [];
  // Parsed boundary: the JSON format is one object a line.
  const write = (line: string): void => void logLines.push(JSON.parse(line) as Record<string, unknown>);
  const stats = new StatsRegistry();
  const source = new XdsSource(
    {
      client: {
        protocol: stateOfTheWorld,
        node: { id: 'test', userAgentName: 'tollgate-ratelimit', metadata: {} },
        tls: undefined,
        backoff: { connectRetryMs: 20, initialMs: 40, maxMs: 100, jitter: 0 },
        stream: { serverUrl, headers: {}, maxMessageBytes: 4_194_304 },
        reportIntervalMs: 0,
        maxMessageSetting: '',
        ...client,
      },
      compile: { mergeDomains: false, ...compile },
    },
    {
      random: () => 0.5,
      stats,
      logger: createLogger({ level: 'trace', format: 'json', destination: { write } }),
    },
  );
  t.teardown(() => source.close());
  const started = source.start((load) => loads.push(load));

  return {
    loads,
    stats,
    logLines,
    started,
    async inForce(domain, requestsPerUnit) {
      await awaitUntil(() => loads.length > 0 && limitOf(loads, domain) === requestsPerUnit, {
        what: `limit ${requestsPerUnit} of ${domain}`,
      });
      t.equal(limitOf(loads, domain), requestsPerUnit, `limit of ${domain} in force`);
    },
    async logged(message) {
      const find = () => logLines.find((line) => message.test(String(line['@message'])));
      const line = await awaitUntil(find, { what: `a log line ${message}` });
      return line ?? {};
    },
  };
}
