import type { ServerTlsFiles } from '@tollgate/kit/grpc/credentials';
import type { TracingOptions } from '@tollgate/kit/telemetry';
import { hostAndPort } from '@tollgate/kit/text';
import type { SecretCertificatesOptions } from '../certificates/secret-certificates.ts';
import type { KubeConfigOptions } from '../kubernetes/kube-config.ts';
import type { AdsServerOptions } from '../surfaces/grpc/ads-server.ts';
import { hasTls, type Settings } from './settings.ts';

/** Where ADS is served: to the network only with TLS, or where plaintext was asked for. */
export function grpcHost(s: Settings): string {
  return s.grpcHost || (hasTls(s) || s.grpcPlaintext ? '0.0.0.0' : '127.0.0.1');
}

/** The part of the settings that says where ADS is served. */
export function adsServerOptions(s: Settings): AdsServerOptions {
  return {
    address: hostAndPort(grpcHost(s), s.grpcPort),
    maxStreamsPerPeer: s.maxStreamsPerPeer,
    maxConnectionAgeMs: s.maxConnectionAgeMs,
    maxConnectionAgeGraceMs: s.maxConnectionAgeGraceMs,
    keepaliveTimeMs: s.keepaliveTimeMs,
    keepaliveTimeoutMs: s.keepaliveTimeoutMs,
  };
}

/** The part of the settings that says with which certificates ADS is served. */
export function serverTlsFiles(s: Settings): ServerTlsFiles {
  return { certFile: s.grpcTlsCert, keyFile: s.grpcTlsKey, clientCaFile: s.grpcClientCacert };
}

/** The part of the settings that says what is traced. */
export function tracingOptions(s: Settings): TracingOptions {
  return {
    enabled: s.tracingEnabled,
    protocol: s.tracingExporterProtocol,
    serviceName: s.tracingServiceName,
    samplingRate: s.tracingSamplingRate,
  };
}

/** The part of the settings that says how the cluster is reached. */
export function kubeConfigOptions({ kubeconfig, kubernetesServiceHost }: Settings): KubeConfigOptions {
  return { kubeconfig, kubernetesServiceHost };
}

/** The part of the settings that says which Secrets certificates are kept in. */
export function certificateOptions(s: Settings, namespace: string): SecretCertificatesOptions {
  const own = { namespace, name: `${s.certificateSecret}-client` };
  const others = s.clientSecrets.map((path) => {
    const [of = '', name = ''] = path.split('/');
    return { namespace: of, name };
  });
  return {
    namespace,
    name: s.certificateSecret,
    serverNames: s.serverNames,
    clientSecrets: [own, ...others],
  };
}
