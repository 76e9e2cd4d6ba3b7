import { Readable } from 'node:stream';
import type { Logger } from '@tollgate/kit/logger';
import type { FastifyReply } from 'fastify';
import type { Permission } from '../scopes.ts';
import type { Visit } from './visit.ts';

/** A file that the browser saves. */
export interface Download {
  /** Media type. */
  readonly type: string;
  readonly fileName: string;
  readonly content: AsyncIterable<string>;
}

/** GET of a file. */
export interface DownloadRoute {
  readonly path: string;
  readonly permission: Permission;
  /** Throws before the response begins when the file cannot be made. */
  readonly open: (visit: Visit) => Promise<Download>;
}

/**
 * Sends a file in pieces. An error, such as the end of the session, cuts the connection before the
 * end of the response: no file looks complete.
 */
export function sendDownload(
  logger: Logger,
  reply: FastifyReply,
  { type, fileName, content }: Download,
): FastifyReply {
  return reply
    .header('cache-control', 'no-store')
    .header('content-disposition', `attachment; filename="${fileName}"`)
    .type(type)
    .send(Readable.from(logFailure(logger, fileName, content)));
}

async function* logFailure(
  logger: Logger,
  fileName: string,
  content: Download['content'],
): AsyncGenerator<string> {
  try {
    yield* content;
  } catch (error) {
    logger.warn({ err: error, file: fileName }, 'failed to send a whole file');
    throw error;
  }
}
