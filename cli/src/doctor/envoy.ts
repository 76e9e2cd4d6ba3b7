import { getRequestFailure } from '@tollgate/kit/errors';
import { withoutSlash } from '../connection/inputs.ts';
import { checkConnection, fetchPage } from './endpoint.ts';
import { type Finding, fail, pass } from './finding.ts';

interface HostStatus {
  readonly address?: { readonly socket_address?: { readonly address: string; readonly port_value: number } };
  readonly health_status?: Readonly<Record<string, unknown>>;
  readonly stats?: readonly { readonly name?: string; readonly value?: string | number }[];
}

interface ClusterStatus {
  readonly name: string;
  readonly host_statuses?: readonly HostStatus[];
}

/** Whether Envoy reaches the endpoints of its clusters, by its admin interface. */
export async function checkEnvoy(adminUrl: string, nowMs: () => number): Promise<readonly Finding[]> {
  const connection = await checkConnection(adminUrl, nowMs());
  if (connection.some(({ ok }) => !ok)) return connection;
  const target = adminUrl;
  try {
    const { status, text } = await fetchPage(`${withoutSlash(adminUrl)}/clusters?format=json`, nowMs);
    if (status !== 200)
      return [
        fail(
          { check: 'envoy', target },
          `${status} for /clusters`,
          'this is no admin interface: correct the URL',
        ),
      ];
    // Parsed boundary: Envoy documents this form.
    const { cluster_statuses: clusters = [] } = JSON.parse(text) as { cluster_statuses?: ClusterStatus[] };
    return [...connection, ...clusters.map(checkCluster)];
  } catch (error) {
    return [
      ...connection,
      fail(
        { check: 'envoy', target },
        `no clusters in the response: ${getRequestFailure(error)}`,
        'this is no admin interface: correct the URL',
      ),
    ];
  }
}

function checkCluster({ name, host_statuses: hosts = [] }: ClusterStatus): Finding {
  const check = { check: 'envoy', target: `cluster ${name}` } as const;
  if (hosts.length === 0)
    return fail(check, 'no endpoints', 'correct the name of the Service, or the DNS that Envoy uses');
  const unhealthy = hosts.filter(isUnhealthy);
  const refused = hosts.filter(
    (host) => count(host, 'cx_connect_fail') > 0 && count(host, 'cx_active') === 0,
  );
  const bad = [...new Set([...unhealthy, ...refused])].map(describeAddress).join(', ');
  if (unhealthy.length > 0)
    return fail(
      check,
      `${unhealthy.length} of ${hosts.length} unhealthy: ${bad}`,
      'start them, or correct port and protocol (HTTP/2 for gRPC) of the cluster',
    );
  if (refused.length > 0)
    return fail(
      check,
      `connections fail: ${bad}`,
      'start them, or correct port and network policies of the cluster',
    );
  return pass(check, `${hosts.length} ${hosts.length === 1 ? 'endpoint' : 'endpoints'}`);
}

function isUnhealthy({ health_status: status = {} }: HostStatus): boolean {
  const { eds_health_status: eds = 'HEALTHY', ...flags } = status;
  return eds !== 'HEALTHY' || Object.values(flags).includes(true);
}

function count({ stats = [] }: HostStatus, name: string): number {
  return Number(stats.find((stat) => stat.name === name)?.value ?? 0);
}

function describeAddress({ address }: HostStatus): string {
  const { address: host, port_value: port } = address?.socket_address ?? {
    address: 'unknown',
    port_value: 0,
  };
  return `${host}:${port}`;
}
