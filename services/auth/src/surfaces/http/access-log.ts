import type { Logger } from '@tollgate/kit/logger';
import type { Api } from './api.ts';

/** Logs each request when it has been answered: never its query, which may hold tokens, nor its headers and body. */
export function addAccessLog(api: Api, logger: Logger): void {
  const log = logger.child({ component: 'api' });
  api.addHook('onResponse', (request, reply, done) => {
    log.info(
      {
        method: request.method,
        path: request.url.split('?', 1)[0],
        route: request.routeOptions.url,
        remote_addr: request.ip,
        request_id: request.id,
        status: reply.statusCode,
        duration: Math.round(reply.elapsedTime * 1e6),
      },
      'request completed',
    );
    done();
  });
}
