import { hostname } from 'node:os';
import { CredentialVerifier } from '@tollgate/admin-clients/verify-credentials';
import {
  followTls,
  plaintextCredentials,
  type WatchedCredentials,
  watchServerCredentials,
} from '@tollgate/kit/grpc/credentials';
import { logGrpcLibrary } from '@tollgate/kit/grpc/library';
import { createSanGuard, everyPeer } from '@tollgate/kit/grpc/peer';
import { Health } from '@tollgate/kit/health';
import { nameListenSettings } from '@tollgate/kit/http-server';
import { createTermination, Lifecycle } from '@tollgate/kit/lifecycle';
import { addProcessMetrics } from '@tollgate/kit/metrics';
import type { StartReport } from '@tollgate/kit/start-report';
import { startTracing } from '@tollgate/kit/telemetry';
import type { TlsValidity } from '@tollgate/kit/tls';
import { Registry } from 'prom-client';
import { buildAdminServer } from './admin/server.ts';
import { createAdmission } from './admission/components.ts';
import { watchBearerTokens } from './ads/bearer-tokens.ts';
import { ClientRegistry } from './ads/clients.ts';
import { ResponseCache } from './ads/exchange.ts';
import { AdsServer } from './ads/server.ts';
import type { ServedType } from './ads/stream.ts';
import { type Snapshot, SnapshotStore } from './catalog/snapshot.ts';
import type { HoldStore } from './catalog/source.ts';
import type { SecretCertificates } from './certificates/certificates.ts';
import {
  getGrpcHost,
  getSourceName,
  type Settings,
  settingsSpec,
  toAdsListenOptions,
  toTlsFiles,
  toTracingOptions,
} from './config/settings.ts';
import { type Context, PipelineTrace } from './context.ts';
import { type DeletionOptions, memoryHold } from './deletions.ts';
import { environments, type Served, toAllowedHosts } from './environment.ts';
import { countReloads, registerLimiters, registerMetrics } from './metrics.ts';
import { Pipeline } from './pipeline.ts';
import { accessConfigType } from './policies/access-config.ts';
import { PolicyLog } from './policies/policy-log.ts';
import { PolicyPipeline } from './policies/policy-pipeline.ts';
import { countByState } from './status/client-report.ts';

/** The service, before it is started. */
export interface App {
  readonly lifecycle: Lifecycle;
  readonly health: Health;
  /** Ports in use once started; those set to 0 are chosen by the system. */
  readonly ports: { grpc: number; admin: number; admission: number };
}

/** Composes the service. */
export async function buildApp(
  settings: Settings,
  { logger, nowMs, report }: Pick<Context, 'logger' | 'nowMs'> & { readonly report: StartReport },
): Promise<App> {
  // Process-wide, and before the library can log.
  logGrpcLibrary(logger);
  const registry = new Registry();
  addProcessMetrics(registry);
  const source = getSourceName(settings);
  const electsLeader = source === 'kubernetes' && settings.statusEnabled;
  const admits = settings.admissionEnabled;
  const metrics = registerMetrics(registry, {
    source,
    electsLeader,
    admits,
    registersWebhook: settings.grpcOwnCa,
  });
  const health = new Health();
  const served = health.component('snapshot', { healthy: false });
  const snapshots = new SnapshotStore(nowMs);
  const stopWaiting = snapshots.onChange(() => {
    served.set(true);
    stopWaiting();
  });
  const limiters = new ClientRegistry();
  const authServers = { snapshots: new SnapshotStore(nowMs), clients: new ClientRegistry() };
  registerLimiters(() => countByState(limiters.all(), (name) => snapshots.currentOf(name)), registry);
  const tracing = await startTracing({ ...toTracingOptions(settings), logger });
  const trace = tracing.enabled ? new PipelineTrace(tracing) : undefined;
  const context: Context = { logger, metrics, nowMs, trace };

  const observer: { pipeline?: Pipeline; policies?: PolicyPipeline | undefined } = {};
  const reportMatches = () => observer.pipeline?.matchedRules?.report(snapshots.current());
  const parts = { snapshots, limiters, authServers, reportMatches };
  const environment = await environments[source](context, settings, parts);
  const pipeline = new Pipeline(context, {
    ...environment,
    snapshots,
    ...(environment.policies && {
      policiesMissingReason: () => observer.policies?.state().notServedReason ?? '',
    }),
    limiters,
    debounceMs: settings.debounceMs,
    allowEmpty: settings.allowEmpty,
    deletions: toDeletionOptions(settings, environment.holdStore),
    unmatchedAfterMs: electsLeader ? settings.unmatchedAfterMs : 0,
    // The files of a folder have one owner, who may move a domain to another namespace at once.
    domainGraceMs: source === 'kubernetes' ? settings.domainGraceMs : 0,
    anyDomainNamespaces: source === 'kubernetes' ? settings.anyDomainNamespaces : ['*'],
  });
  observer.pipeline = pipeline;
  const policies =
    environment.policies &&
    new PolicyPipeline(context, {
      source: environment.policies,
      limiters: { snapshots, clients: limiters },
      authServers,
      setRules: (rules) => pipeline.setPolicyRules(rules),
      reporters: [new PolicyLog(logger), ...(environment.policyReporters ?? [])],
      health: health.component('access policies', { healthy: true }),
      debounceMs: settings.debounceMs,
      allowedHosts: environment.allowedHosts ?? toAllowedHosts(settings),
      allowEmpty: settings.allowEmpty,
      // An API server that lists no policies has none; a folder may not be mounted.
      allowEmptyStart: settings.allowEmpty && (source !== 'folder' || settings.allowNoPolicies),
      deletions: toDeletionOptions(settings, environment.policyHoldStore ?? memoryHold),
    });
  observer.policies = policies;
  const admin = buildAdminServer(
    {
      ...{ registry, pipeline, policies, snapshots, limiters, health, logger, nowMs, sourceName: source },
      ...{ authServers, policyStatuses: environment.policyStatuses },
      replica: settings.podName || hostname(),
      otherReplicas: () => environment.reports?.others ?? [],
      report,
    },
    {
      ...{ host: settings.adminHost, port: settings.adminPort, token: settings.adminToken },
      verifier: createVerifier(settings, nowMs),
    },
  );
  const { certificates } = environment;
  const ads = await composeAds(context, settings, {
    snapshots,
    limiters,
    health,
    certificates,
    otherTypes: new Map([
      [
        accessConfigType,
        {
          ...{ ...authServers, clientNoun: 'auth server' as const },
          cache: new ResponseCache(accessConfigType),
          ...(environment.onSeenPolicies && { onSeenPolicies: environment.onSeenPolicies }),
        },
      ],
    ]),
    onMatches: (snapshot, matchedRules) => pipeline.matchedRules?.add(snapshot, matchedRules),
  });

  const ports = { grpc: settings.grpcPort, admin: settings.adminPort, admission: settings.admissionPort };
  const drainTimeoutMs = settings.shutdownDelayMs + settings.drainTimeoutMs;
  const lifecycle = new Lifecycle({ logger, drainTimeoutMs });
  // Components start in this order and stop in reverse. The admin server comes first, to observe a
  // start that waits.
  const components = [
    { name: 'tracing', stop: () => tracing.shutdown() },
    {
      name: 'admin server',
      start: async () => {
        const { adminHost, adminPort } = settingsSpec;
        ports.admin = await nameListenSettings(admin.start(), { host: adminHost.env, port: adminPort.env });
      },
      stop: ({ signal }: { readonly signal: AbortSignal }) => admin.stop(signal),
    },
    ...environment.components,
    // The source of policies may be a part of the other source, which must not deliver before.
    ...(policies ? [{ name: 'policies', start: () => policies.start(), stop: () => policies.close() }] : []),
    { name: 'source', start: () => pipeline.start(), stop: () => pipeline.close() },
    ...(certificates === undefined ? [] : [certificatesComponent(certificates, health)]),
    {
      name: 'ADS server',
      start: async () => {
        const { grpcHost, grpcPort } = settingsSpec;
        ports.grpc = await nameListenSettings(ads.server.start(), { host: grpcHost.env, port: grpcPort.env });
      },
      stop: async ({ signal }: { readonly signal: AbortSignal }) => {
        await ads.server.stop(signal);
        ads.close();
      },
    },
    ...(await createAdmission(context, settings, {
      ...{ ...environment, pipeline, policyPipeline: policies, ports },
    })),
    // Stopped before the ADS server, so that limiters which reconnect elsewhere are not reported as
    // gone.
    ...environment.statusComponents,
    createTermination(health, settings.shutdownDelayMs),
    { name: 'announcement', start: () => logger.info({ ...ports, source }, 'listening') },
    report,
  ];
  for (const component of components) lifecycle.add(component);
  return { lifecycle, health, ports };
}

function createVerifier(
  { adminKeysUrl: url, adminKeysToken: token }: Settings,
  nowMs: () => number,
): CredentialVerifier | undefined {
  return url === '' ? undefined : new CredentialVerifier({ url, token, nowMs });
}

function toDeletionOptions(settings: Settings, store: HoldStore): DeletionOptions | undefined {
  if (!settings.deletionGuard) return undefined;
  const { deletionDelayMs, deletionGuardWindowMs, deletionGuardDomains, deletionGuardShare } = settings;
  return {
    ...{ store, delayMs: deletionDelayMs, windowMs: deletionGuardWindowMs },
    ...{ domains: deletionGuardDomains, share: deletionGuardShare / 100 },
  };
}

/** Unhealthy until there is a certificate: before, the ADS server does not listen. */
function certificatesComponent(certificates: SecretCertificates, health: Health) {
  const issued = health.component('certificates', { healthy: false });
  const stopListening = certificates.onChange(() => {
    issued.set(true);
    stopListening();
  });
  return {
    name: 'certificates',
    start: (context: { readonly signal: AbortSignal }) => certificates.start(context),
    stop: () => certificates.close(),
  };
}

interface AdsParts extends Pick<Served, 'snapshots' | 'limiters'> {
  readonly otherTypes: ReadonlyMap<string, ServedType>;
  readonly onMatches: (snapshot: Snapshot, matchedRules: unknown) => void;
  readonly health: Health;
  readonly certificates: SecretCertificates | undefined;
}

async function composeAds(
  context: Context,
  settings: Settings,
  { certificates, ...parts }: AdsParts,
): Promise<{ readonly server: AdsServer; close(): void }> {
  const { tokenFile, grpcClientSan } = settings;
  const onAttempt = countReloads(context.metrics, 'tokens');
  const watched =
    tokenFile === '' ? undefined : await watchBearerTokens(tokenFile, { logger: context.logger, onAttempt });
  const tls = await loadCredentials(context, settings, certificates);
  const server = new AdsServer(context, {
    ...toAdsListenOptions(settings),
    ...parts,
    credentials: tls.credentials,
    guard: grpcClientSan.length === 0 ? everyPeer : createSanGuard(grpcClientSan),
    tokens: watched?.tokens,
  });
  return {
    server,
    close() {
      tls.close();
      watched?.close();
    },
  };
}

/** Credentials of the ADS server: from Secrets, from files, or plaintext. */
async function loadCredentials(
  { logger, metrics, nowMs }: Context,
  settings: Settings,
  certificates: SecretCertificates | undefined,
): Promise<WatchedCredentials> {
  const onCertificate = (validity: TlsValidity): void => metrics.tls.setValidity('ads_server', validity);
  if (certificates !== undefined) {
    certificates.onChange(({ notBeforeMs, notAfterMs }) => {
      if (notBeforeMs !== undefined && notAfterMs !== undefined) onCertificate({ notBeforeMs, notAfterMs });
    });
    return { credentials: followTls(certificates, { mutual: true }), close: () => undefined };
  }
  if (settings.grpcTlsCert !== '') {
    const onAttempt = countReloads(metrics, 'tls');
    return await watchServerCredentials(toTlsFiles(settings), { logger, onAttempt, onCertificate, nowMs });
  }
  const host = getGrpcHost(settings);
  if (settings.grpcPlaintext)
    logger.warn({ host }, 'serving ADS without TLS (XDS_GRPC_PLAINTEXT), use only in trusted networks');
  else logger.warn({ host }, 'serving ADS without TLS, only on loopback');
  return plaintextCredentials();
}
