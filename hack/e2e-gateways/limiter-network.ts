import { execFileSync, spawn } from 'node:child_process';
import { readlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { awaitUntil } from '@tollgate/testkit/await-until';
import {
  findBinary,
  programEnvironment,
  type ServerProcess,
  startServerProcess,
} from '@tollgate/testkit/processes';
import { fetchText } from '@tollgate/testkit/services';
import { deploymentVariables } from '../charts/support/envoy-gateway.ts';

/** Addresses of the two ends of the link. */
export const gatewayAddress = '10.254.7.1';
export const limiterAddress = '10.254.7.2';

/** Addresses of clients. Envoy takes connections from 127.0.0.1 for its own. */
export const clientAddresses = ['10.254.7.5', '10.254.7.6', 'fd00:7::5'] as const;

/** Ports of Envoy Gateway, which are fixed. */
export const limiterPorts = { ads: 18001, redis: 6379, metrics: 19001, http: 8080, grpc: 8081, debug: 6070 };

const run = (command: string): void => {
  const [program = '', ...args] = command.split(' ');
  execFileSync(program, args, { stdio: 'pipe' });
};

/**
 * Makes a network for the rate limit service, which has the same ports as Envoy Gateway, with the
 * names that both have in a cluster. Returns the command that runs a program there.
 */
export async function createLimiterNetwork(folder: string): Promise<readonly string[]> {
  const holder = spawn(findBinary('unshare'), ['--net', 'sleep', '600'], { stdio: 'ignore' });
  const network = `/proc/${holder.pid}/ns/net`;
  await awaitUntil(() => readlinkSync(network) !== readlinkSync('/proc/self/ns/net'), {
    what: 'a network namespace',
  });
  run('ip link set lo up');
  run(`ip link add gateway type veth peer name limiter netns ${holder.pid}`);
  run(`ip addr add ${gatewayAddress}/30 dev gateway`);
  run('ip link set gateway up');
  for (const address of clientAddresses) run(`ip addr add ${address} dev lo`);
  const inside = ['nsenter', `--net=${network}`];
  for (const args of ['link set lo up', `addr add ${limiterAddress}/30 dev limiter`, 'link set limiter up'])
    run([...inside, 'ip', ...args.split(' ')].join(' '));

  // The API server chooses its address by this route.
  run(`ip route add default via ${limiterAddress}`);
  const hosts = join(folder, 'hosts');
  const names = [
    '127.0.0.1 localhost',
    '::1 localhost',
    `${gatewayAddress} envoy-gateway`,
    `${limiterAddress} envoy-ratelimit.envoy-gateway-system.svc.cluster.local`,
  ];
  writeFileSync(hosts, `${names.join('\n')}\n`);
  run(`mount --bind ${hosts} /etc/hosts`);
  run('mount -t tmpfs tmpfs /certs');
  return inside;
}

/**
 * Starts services/ratelimit as the rate limit Deployment of Envoy Gateway does, but without client
 * certificates: standalone, Envoy's is from an authority in the memory of Envoy Gateway.
 */
export function startLimiter(inside: readonly string[]): Promise<ServerProcess> {
  const { GRPC_SERVER_TLS_CA_CERT: _, ...variables } = deploymentVariables(limiterPorts);
  const [command = '', ...args] = inside;
  return startServerProcess({
    command,
    args: [...args, process.execPath, resolve(import.meta.dirname, '../../services/ratelimit/src/main.ts')],
    env: programEnvironment({ ...variables, REDIS_URL: `${gatewayAddress}:${limiterPorts.redis}` }),
    ready: async () => {
      await fetchText(`http://${limiterAddress}:${limiterPorts.http}/healthcheck`);
    },
  });
}

/** Whether the limiter has the rules of Envoy Gateway. */
export async function hasRules(): Promise<boolean> {
  const metrics = await fetchText(`http://${limiterAddress}:${limiterPorts.metrics}/metrics`);
  return /^ratelimit_service_config_load_success [1-9]/m.test(metrics);
}
