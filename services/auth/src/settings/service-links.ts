import type { Environment } from '@tollgate/kit/settings';

/**
 * Removes the variables that Kubernetes adds for a Service named `gotrue` or `svc-…`.
 * `GOTRUE_PORT=tcp://10.0.0.1:9999` would be read as the port to listen on.
 *
 * @see https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables
 */
export function withoutServiceLinks(env: Environment): Environment {
  const services = Object.keys(env).flatMap(
    (variable) => /^((?:SVC|GOTRUE)(?:_\w+)?)_SERVICE_HOST$/.exec(variable)?.[1] ?? [],
  );
  if (services.length === 0) return env;
  return Object.fromEntries(
    Object.entries(env).filter(
      ([variable, value]) => !services.some((service) => isLink(variable, { service, value })),
    ),
  );
}

function isLink(
  variable: string,
  { service, value }: { readonly service: string; readonly value: string | undefined },
): boolean {
  if (!variable.startsWith(`${service}_`)) return false;
  const rest = variable.slice(service.length + 1);
  if (rest === 'PORT') return /^(?:tcp|udp|sctp):\/\//.test(value ?? '');
  return (
    /^SERVICE_(?:HOST|PORT(?:_\w+)?)$/.test(rest) ||
    /^PORT_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?$/.test(rest)
  );
}
