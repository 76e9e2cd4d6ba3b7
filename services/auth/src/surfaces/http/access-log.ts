import type { Logger } from '@tollgate/kit/logger';
import type { AuditEntry } from '../../domain/audit-entry.ts';
import type { Api } from './api.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** The last entry that the request made for the audit log. */
    auditEntry: AuditEntry | undefined;
  }
}

/** Longer ones tell nobody more. */
const maxRefererChars = 200;

/** Logs each request when it has been answered: never its query, which may hold tokens, nor its headers and body. */
export function addAccessLog(api: Api, logger: Logger): void {
  const log = logger.child({ component: 'api' });
  api.decorateRequest('auditEntry', undefined);
  api.addHook('onResponse', (request, reply, done) => {
    const { auditEntry } = request;
    log.info(
      {
        method: request.method,
        path: request.url.split('?', 1)[0],
        route: request.routeOptions.url,
        remote_addr: request.ip,
        referer: shownReferer(request.headers.referer),
        request_id: request.id,
        status: reply.statusCode,
        duration: Math.round(reply.elapsedTime * 1e6),
        ...(auditEntry && { auth_audit_event: shownEvent(auditEntry) }),
      },
      'request completed',
    );
    done();
  });
}

/** The page that a request came from, without what its query or fragment may give away; undefined for none. */
function shownReferer(referer: string | undefined): string | undefined {
  const url = URL.parse(referer ?? '');
  if (url === null || !/^https?:$/.test(url.protocol)) return undefined;
  return `${url.origin}${url.pathname}`.slice(0, maxRefererChars);
}

/** Who did what, by ids: names and addresses are in the audit log. */
function shownEvent({
  payload: { action, log_type, actor_id, actor_via_sso },
}: AuditEntry): Readonly<Record<string, unknown>> {
  return { action, log_type, actor_id, actor_via_sso };
}
