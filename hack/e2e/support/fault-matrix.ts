import type { Test } from 'tap';

const faultKinds = [
  'kill -9',
  'SIGSTOP',
  'blackhole',
  'slow',
  'storage full',
  'read-only',
  'connections exhausted',
] as const;

type Part = 'PostgreSQL' | 'auth' | 'limiter' | 'xds' | 'Redis';

/** A kind of fault of a part; a blackhole or slowness is that of the network to the part. */
export type Cell = readonly [Part, (typeof faultKinds)[number]];

const stateless = 'it stores nothing itself';
/** Clients beyond the limit of connections are refused as those of a port that refuses all. */
const testedIn = (path: string) => `the limits of connections are tested in ${path}`;

/**
 * Why a cell is not run. Every other cell is a fault in one of the ledgers:
 *
 * |                       | PostgreSQL | auth | limiter | xds | Redis        |
 * | --------------------- | ---------- | ---- | ------- | --- | ------------ |
 * | kill -9               | run        | run  | run     | run | run          |
 * | SIGSTOP               | run        | run  | run     | run | run          |
 * | blackhole             | run        | run  | run     | run | run          |
 * | slow                  | run        | run  | run     | run | run          |
 * | storage full          | run (disk) | –    | –       | –   | run (memory) |
 * | read-only             | run        | –    | –       | –   | run          |
 * | connections exhausted | run        | –    | –       | –   | run          |
 */
const notRun: Readonly<Record<Part, Readonly<Partial<Record<Cell[1], string>>>>> = {
  PostgreSQL: {},
  Redis: {},
  auth: {
    'storage full': stateless,
    'read-only': stateless,
    'connections exhausted': testedIn('packages/kit/test/http-server.test.ts'),
  },
  limiter: {
    'storage full': stateless,
    'read-only': stateless,
    'connections exhausted': testedIn('packages/grpc-server/test/limits.test.ts'),
  },
  xds: {
    'storage full': stateless,
    'read-only': stateless,
    'connections exhausted': testedIn('services/xds/test/ads/hostile-clients.test.ts'),
  },
};

/** Asserts that each cell of the parts is run, or has a reason. */
export function checkMatrix(
  t: Test,
  parts: readonly Part[],
  faults: readonly { readonly cell?: Cell }[],
): void {
  const isRun = (part: Part, kind: Cell[1]) =>
    faults.some(({ cell }) => cell?.[0] === part && cell[1] === kind);
  const wrong = parts.flatMap((part) =>
    faultKinds
      .filter((kind) => isRun(part, kind) === (notRun[part][kind] !== undefined))
      .map((kind) => `${part}: ${kind}`),
  );
  t.same(wrong, [], 'each cell of the matrix is run, or has a reason');
}
