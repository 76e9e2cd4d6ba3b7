import { startWebServer } from '@tollgate/testkit/web-server';
import type { Test } from 'tap';

/** Parameters of `GET /api/v1/query_range`. */
interface RangeQuery {
  readonly query: string;
  readonly start: number;
  readonly end: number;
  readonly step: number;
}

type Answer = (query: RangeQuery) => { readonly status: number; readonly body: unknown };

/** A server that answers as the HTTP API of Prometheus does. */
export async function startPrometheus(t: Test) {
  let answer: Answer = () => ({ status: 503, body: 'Service Unavailable' });
  const requests: RangeQuery[] = [];
  const { port } = await startWebServer(t, (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://prometheus');
    const read = (name: string) => Number(searchParams.get(name));
    const query = {
      ...{ query: searchParams.get('query') ?? '', start: read('start'), end: read('end') },
      step: read('step'),
    };
    requests.push(query);
    const { status, body } = pathname === '/api/v1/query_range' ? answer(query) : { status: 404, body: '' };
    response.statusCode = status;
    response.end(typeof body === 'string' ? body : JSON.stringify(body));
  });
  return {
    url: `http://127.0.0.1:${port}`,
    requests: (): readonly RangeQuery[] => requests,
    /** Sets what it answers. Before, it is unavailable. */
    answer(next: Answer): void {
      answer = next;
    },
  };
}
