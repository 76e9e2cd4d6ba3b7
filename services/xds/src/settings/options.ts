import type { ServerTlsFiles } from '@tollgate/kit/grpc/server-credentials';
import { hostAndPort } from '@tollgate/kit/host-and-port';
import type { KubeConfigOptions } from '../kubernetes/kube-config.ts';
import type { AdsServerOptions } from '../surfaces/grpc/ads-server.ts';
import type { Settings } from './settings.ts';

/** The part of the settings that says where ADS is served. */
export function adsServerOptions(s: Settings): AdsServerOptions {
  return {
    address: hostAndPort(s.grpcHost, s.grpcPort),
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

/** The part of the settings that says how the cluster is reached. */
export function kubeConfigOptions({ kubeconfig, kubernetesServiceHost }: Settings): KubeConfigOptions {
  return { kubeconfig, kubernetesServiceHost };
}
