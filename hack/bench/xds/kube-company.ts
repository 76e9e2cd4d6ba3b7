import { execFileSync } from 'node:child_process';
import { kubeAvailability } from '@tollgate/testkit/kube-binaries';
import type { Company } from '../report/format-facts.ts';

/** What shares the machine with services/xds in this bench. */
export function kubeCompany(): Company {
  const sharedBy = 'etcd, kube-apiserver, services/xds, the limiters and what measures them';
  const available = kubeAvailability();
  if (!available.ok) return { sharedBy, programs: ['no kube-apiserver'] };
  const { etcd, kubeApiserver } = available.binaries;
  return {
    sharedBy,
    programs: [`kube-apiserver ${versionOf(kubeApiserver)}`, `etcd ${versionOf(etcd)}`],
  };
}

function versionOf(binary: string): string {
  const text = execFileSync(binary, ['--version'], { encoding: 'utf8' });
  return /\d+\.\d+\.\d+/.exec(text)?.[0] ?? 'unknown';
}
