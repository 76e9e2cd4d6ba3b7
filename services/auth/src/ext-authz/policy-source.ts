import { AdsClient } from '@tollgate/ads-client/client';
import { incremental, type ResourceChanges } from '@tollgate/ads-client/incremental';
import {
  type ApplyResult,
  type NodeReport,
  type ResourceSubscriber,
  runAbortable,
} from '@tollgate/ads-client/subscription';
import type { HealthComponent } from '@tollgate/kit/health';
import type { Logger } from '@tollgate/kit/logger';
import type { TlsMetrics } from '@tollgate/kit/metrics';
import type { CompiledPolicy } from '@tollgate/policies/compile/compile';
import type { PolicyTable } from '@tollgate/policies/compile/policy-table';
import { AccessConfigSchema } from '@tollgate/proto/tollgate/policy/v1/access_config';
import { extAuthzSettings } from '../config/ext-authz.ts';
import { pageSettings } from '../config/pages.ts';
import { policySettings } from '../config/policies.ts';
import type { Settings } from '../config/settings.ts';
import type { PolicyMetrics } from './observability.ts';
import { compileChanges, emptySet, type PolicySet } from './policy-set.ts';
import { SeenPolicies } from './seen-policies.ts';

interface PolicySourceOptions {
  readonly settings: Pick<
    Settings,
    | 'extAuthzPolicyServer'
    | 'extAuthzPolicyServerToken'
    | 'extAuthzPolicyServerTls'
    | 'extAuthzPolicyServerTlsCa'
    | 'extAuthzPolicyServerTlsCert'
    | 'extAuthzPolicyServerTlsKey'
    | 'extAuthzPolicyServerTlsSan'
    | 'extAuthzPolicyServerNodeId'
  >;
  readonly logger: Logger;
  /** Whether browsers can sign in at this server. Default no. */
  readonly canSignIn?: boolean;
  /** Healthy once there are policies. */
  readonly health: HealthComponent;
  /** Both are undefined if metrics are off. */
  readonly metrics: PolicyMetrics | undefined;
  readonly tlsMetrics: TlsMetrics | undefined;
  /** Interval at which policies that checks had are reported; default ten seconds. */
  readonly reportIntervalMs?: number;
}

/** The pauses between streams: those of the limiter by default. */
const backoff = { connectRetryMs: 3_000, initialMs: 10_000, maxMs: 60_000, jitter: 0.5 };

/** Field of the metadata of the node with the names of policies that checks had. */
const seenPoliciesKey = 'policies_seen';

/** Largest accepted response: the first one, with 100,000 policies, has about 50 MB. */
const maxMessageBytes = 64 * 1024 * 1024;

/** The access policies of an xDS server. The last ones stay while it is unreachable. */
export class PolicySource {
  readonly #client: AdsClient<ResourceChanges>;
  readonly #subscriber: PolicySubscriber;
  readonly #logger: Logger;
  #following: Promise<void> = Promise.resolve();

  /**
   * Reads the TLS files; connects at `start`.
   *
   * @throws Error that names the file which cannot be used.
   */
  static async open(options: PolicySourceOptions): Promise<PolicySource> {
    const source = new PolicySource(options);
    await source.#client.open();
    return source;
  }

  private constructor(options: PolicySourceOptions) {
    const { settings, tlsMetrics, reportIntervalMs = 10_000, ...subscriber } = options;
    const { logger, metrics } = options;
    const { extAuthzPolicyServerToken: token } = settings;
    this.#logger = logger;
    this.#subscriber = new PolicySubscriber(subscriber);
    this.#client = new AdsClient(
      {
        protocol: incremental,
        node: { id: settings.extAuthzPolicyServerNodeId, userAgentName: 'tollgate-auth', metadata: {} },
        stream: {
          serverUrl: settings.extAuthzPolicyServer,
          headers: token === '' ? {} : { authorization: `Bearer ${token}` },
          maxMessageBytes,
        },
        tls: settings.extAuthzPolicyServerTls
          ? {
              certFile: settings.extAuthzPolicyServerTlsCert,
              keyFile: settings.extAuthzPolicyServerTlsKey,
              caFile: settings.extAuthzPolicyServerTlsCa,
              serverName: settings.extAuthzPolicyServerTlsSan,
            }
          : undefined,
        backoff,
        reportIntervalMs,
        maxMessageSetting: policySettings.extAuthzPolicyServer.env,
      },
      {
        logger,
        onConnected: (connected) => metrics?.setConnected(connected),
        onCertificate: (validity) => tlsMetrics?.setValidity('policy_client', validity),
      },
    );
  }

  /** Undefined until a first set was accepted. */
  get current(): PolicyTable | undefined {
    return this.#subscriber.table;
  }

  /** Records that a check of a gateway had this policy. */
  see(name: string | undefined): void {
    this.#subscriber.seen.add(name);
  }

  /** Does not wait for policies: checks are denied until there are some. */
  start(): void {
    this.#following = this.#client.start(this.#subscriber).catch((error) => {
      this.#logger.error({ err: error }, 'failed to start the client of the policy server');
    });
  }

  async close(): Promise<void> {
    await this.#client.close();
    await this.#following;
  }
}

type SubscriberOptions = Pick<PolicySourceOptions, 'canSignIn' | 'logger' | 'health' | 'metrics'>;

/** Puts AccessConfig messages into force. */
class PolicySubscriber implements ResourceSubscriber<ResourceChanges> {
  readonly typeName: string = AccessConfigSchema.typeName;
  readonly #options: SubscriberOptions;
  readonly seen: SeenPolicies = new SeenPolicies();
  #set: PolicySet = emptySet;
  table: PolicyTable | undefined;

  constructor(options: SubscriberOptions) {
    this.#options = options;
  }

  /** Browsers need pages to sign in, and a database to sign out. */
  readonly #findProblem = ({ hasBrowser }: CompiledPolicy): string | undefined => {
    if (hasBrowser !== true || this.#options.canSignIn === true) return undefined;
    const names = [pageSettings.pagesEnabled.env, extAuthzSettings.extAuthzSessionCheck.env];
    return `spec.access.browser: Redirect needs ${names.join(' and ')} of the auth server to be true`;
  };

  versions(): ReadonlyMap<string, string> {
    return new Map([...this.#set.namespaces].map(([name, { version }]) => [name, version]));
  }

  async apply(changes: ResourceChanges, signal: AbortSignal): Promise<ApplyResult> {
    const result = await runAbortable(compileChanges(changes, this.#set, this.#findProblem), signal);
    if (!result.ok) return result;
    const { set, rejected, problems } = result;
    const before = new Set(this.#set.policies);
    this.#set = set;
    this.table = set.table;
    this.seen.retain(new Set(set.policies.filter((one) => before.has(one)).map(({ name }) => name)));
    const { logger, health, metrics } = this.#options;
    health.set(true);
    metrics?.setRejected(rejected);
    const counts = { policies: set.policies.length, routes: set.index.size, rejected };
    logger.info({ version: changes.version, ...counts }, 'access policies in force');
    // The others are in force nevertheless. The server has to see which ones are not.
    return problems.length === 0
      ? { ok: true }
      : { ok: false, problem: problems.join('\n'), isInForce: true };
  }

  onStream(): void {
    this.seen.startStream();
  }

  async collectReport(): Promise<NodeReport | undefined> {
    const names = this.seen.collect();
    return names && { metadata: { [seenPoliciesKey]: [...names] }, sent: () => this.seen.sent(names) };
  }

  onAnswer(accepted: boolean): void {
    this.#options.metrics?.recordSet(accepted);
  }
}
