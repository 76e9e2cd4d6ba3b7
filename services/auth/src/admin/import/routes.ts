import type { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { ApiKeysContext } from '../../api-keys/context.ts';
import { requireApiKeys } from '../../api-keys/keys.ts';
import type { AddRoutes, Api } from '../../http/api.ts';
import { readAdminRequest } from '../../sessions/admin-request.ts';
import type { AdminContext } from '../users.ts';
import { importApiKeys } from './api-keys.ts';
import { type ImportCounts, importUsers, TooManyLines } from './import.ts';
import type { LineProblem } from './user.ts';

/** Lines that fit into the time limit of a request. */
const maxLines = 10_000;
/** Responses are built in memory. */
const maxShownProblems = 1_000;

const importQuery = Type.Object({
  dry_run: Type.Optional(Type.String({ description: '`true`: check the lines, and import none.' })),
});

/** `/admin/users/import` and `/admin/api-keys/import` */
export const addImportRoutes: AddRoutes<AdminContext & ApiKeysContext> = (api, context) => {
  // In a scope of its own: the parser of its bodies must not apply to other routes.
  void api.register((scope: Api, _options, done) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser('*', (_request, payload, parsed) => parsed(null, payload));
    const schema = { querystring: importQuery };
    scope.post('/admin/users/import', { schema }, async (request, reply) => {
      const adminRequest = await readAdminRequest(request, context);
      const isDryRun = request.query.dry_run === 'true';
      return runImport({ request, reply }, (chunks, report) =>
        importUsers(context, chunks, { ...adminRequest, ...report, isDryRun, firstLine: 1 }),
      );
    });
    scope.post('/admin/api-keys/import', { schema }, async (request, reply) => {
      const adminRequest = await readAdminRequest(request, context);
      requireApiKeys(context);
      const isDryRun = request.query.dry_run === 'true';
      return runImport({ request, reply }, (chunks, report) =>
        importApiKeys(context, chunks, { ...adminRequest, ...report, isDryRun }),
      );
    });
    done();
  });
};

interface ImportReport {
  readonly lastLine: number;
  readonly onProblem: (problem: LineProblem) => void;
  readonly onProgress: (counts: ImportCounts) => void;
}

/** Imports the lines of the body, and responds with counts and problems. */
async function runImport(
  { request, reply }: { readonly request: FastifyRequest; readonly reply: FastifyReply },
  importLines: (chunks: AsyncIterable<Uint8Array>, report: ImportReport) => Promise<ImportCounts>,
): Promise<FastifyReply> {
  const problems: LineProblem[] = [];
  let counts: ImportCounts = { imported: 0, skipped: 0, failed: 0, lastLine: 0 };
  let isCut = false;
  // The stream of the parser above; without a content type there is no parser. Destroying it
  // with lines left would close the connection before the response is sent.
  const body = (request.body ?? request.raw) as Readable;
  try {
    counts = await importLines(body.iterator({ destroyOnReturn: false }), {
      lastLine: maxLines,
      onProblem: (problem) => {
        if (problems.length < maxShownProblems) problems.push(problem);
      },
      onProgress: (progress) => {
        counts = progress;
      },
    });
  } catch (error) {
    if (!(error instanceof TooManyLines)) throw error;
    isCut = true;
  }
  const { lastLine, ...rest } = counts;
  return reply.code(isCut ? 413 : 200).send({
    ...rest,
    last_line: lastLine,
    errors: problems,
    ...(isCut && {
      msg: `only ${maxLines} lines per request: send the lines after ${lastLine} in another one`,
    }),
  });
}
