import { fromBinary } from '@bufbuild/protobuf';
import { AdsClient } from '@tollgate/ads-client/client';
import type { ResourceSet } from '@tollgate/ads-client/messages';
import { type ApplyResult, type ResourceSubscriber, runAbortable } from '@tollgate/ads-client/subscription';
import { getErrorMessage } from '@tollgate/kit/errors';
import type { HealthComponent } from '@tollgate/kit/health';
import type { Logger } from '@tollgate/kit/logger';
import type { TlsMetrics } from '@tollgate/kit/metrics';
import type { Steps } from '@tollgate/kit/time';
import { compilePolicy, createInvalidPolicy } from '@tollgate/policies/compile/compile';
import { type NamedPolicy, PolicyTable } from '@tollgate/policies/compile/policy-table';
import { policyApiVersion, policyKind } from '@tollgate/policies/definition/resource-shape';
import { readPolicy } from '@tollgate/policies/read/read-policy';
import { AccessConfigSchema, type AccessPolicy } from '@tollgate/proto/tollgate/policy/v1/access_config';
import { formatProblem } from '@tollgate/rules/problem';
import { policySettings } from '../config/policies.ts';
import type { Settings } from '../config/settings.ts';
import type { PolicyMetrics } from './observability.ts';

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
  /** Healthy once there are policies. */
  readonly health: HealthComponent;
  /** Both are undefined if metrics are off. */
  readonly metrics: PolicyMetrics | undefined;
  readonly tlsMetrics: TlsMetrics | undefined;
}

/** The pauses between streams: those of the limiter by default. */
const backoff = { connectRetryMs: 3_000, initialMs: 10_000, maxMs: 60_000, jitter: 0.5 };

/** Largest accepted set: 100,000 policies have about 50 MB. */
const maxMessageBytes = 64 * 1024 * 1024;

/** The access policies of an xDS server. The last ones stay while it is unreachable. */
export class PolicySource {
  readonly #client: AdsClient;
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

  private constructor({ settings, logger, health, metrics, tlsMetrics }: PolicySourceOptions) {
    const { extAuthzPolicyServerToken: token } = settings;
    this.#logger = logger;
    this.#subscriber = new PolicySubscriber({ logger, health, metrics });
    this.#client = new AdsClient(
      {
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
        reportIntervalMs: 0,
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

/** A policy that was compiled, by its content. */
type CompiledPolicies = ReadonlyMap<string, NamedPolicy>;

type SubscriberOptions = Pick<PolicySourceOptions, 'logger' | 'health' | 'metrics'>;

/** Puts sets of AccessConfig messages into force. */
class PolicySubscriber implements ResourceSubscriber {
  readonly typeName: string = AccessConfigSchema.typeName;
  readonly #options: SubscriberOptions;
  #compiled: CompiledPolicies = new Map();
  table: PolicyTable | undefined;

  constructor(options: SubscriberOptions) {
    this.#options = options;
  }

  async apply({ version, resources }: ResourceSet, signal: AbortSignal): Promise<ApplyResult> {
    const result = await runAbortable(compileSet(resources, this.#compiled), signal);
    if (!result.ok) return result;
    this.#compiled = result.compiled;
    this.table = new PolicyTable([...result.compiled.values()]);
    const { logger, health } = this.#options;
    health.set(true);
    logger.info({ version, policies: result.compiled.size }, 'access policies in force');
    return { ok: true };
  }

  onAnswer(accepted: boolean): void {
    this.#options.metrics?.recordSet(accepted);
  }
}

type SetResult =
  | { readonly ok: true; readonly compiled: CompiledPolicies }
  | { readonly ok: false; readonly problem: string };

/** All or nothing. Policies that have not changed are not compiled again. */
function* compileSet(resources: readonly Uint8Array[], before: CompiledPolicies): Steps<SetResult> {
  const compiled = new Map<string, NamedPolicy>();
  const problems: string[] = [];
  for (const [index, bytes] of resources.entries()) {
    try {
      const { name: namespace, policies } = fromBinary(AccessConfigSchema, bytes);
      for (const policy of policies) {
        const key = JSON.stringify([
          namespace,
          policy.name,
          String(policy.createdMs),
          policy.spec,
          policy.deniedHosts,
        ]);
        const known = before.get(key);
        const result =
          known === undefined ? compileOne(namespace, policy) : { ok: true as const, named: known };
        if (result.ok) compiled.set(key, result.named);
        else problems.push(...result.problems);
        yield;
      }
    } catch (error) {
      return { ok: false, problem: `resource ${index} cannot be decoded: ${getErrorMessage(error)}` };
    }
  }
  return problems.length === 0 ? { ok: true, compiled } : { ok: false, problem: problems.join('\n') };
}

type PolicyResult =
  | { readonly ok: true; readonly named: NamedPolicy }
  | { readonly ok: false; readonly problems: readonly string[] };

function compileOne(namespace: string, { name, createdMs, spec, deniedHosts }: AccessPolicy): PolicyResult {
  const label = `${namespace}/${name}`;
  const age = { name: label, createdMs: Number(createdMs) };
  if (spec === '')
    return { ok: true, named: { ...age, hosts: deniedHosts, policy: createInvalidPolicy(label) } };
  const manifest = { apiVersion: policyApiVersion, kind: policyKind, metadata: { namespace, name } };
  const read = readPolicy({ ...manifest, spec: JSON.parse(spec) }, label);
  const compiled = read.ok ? compilePolicy(read.resource) : read;
  if (!compiled.ok) return { ok: false, problems: compiled.problems.map(formatProblem) };
  const { hosts = [] } = read.ok ? read.resource.spec : {};
  return { ok: true, named: { ...age, hosts, policy: compiled.policy } };
}
