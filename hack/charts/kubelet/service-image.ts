import { resolve } from 'node:path';

/** What the image of a service adds to its base, and says of itself. */
export interface ServiceImage {
  /** What containers see as `workingFolder`. */
  readonly folder: string;
  readonly workingFolder: string;
  readonly environment: Readonly<Record<string, string>>;
  /** The arguments of a container that has none. */
  readonly command: readonly string[];
}

/** Where it has Node.js. */
const node = '/nodejs/bin/node';

/** The base of all images: Node.js, the one that runs the tests, as the entry point. */
export const baseImage = {
  entrypoint: node,
  files: { [node]: process.execPath },
  environment: { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' },
} as const;

/** The image of a service as it would be made of this checkout: all of it. */
export function checkoutImage(service: string): ServiceImage {
  return {
    folder: resolve(import.meta.dirname, '../../..'),
    workingFolder: '/app',
    environment: { NODE_ENV: 'production' },
    command: [`services/${service}/src/main.ts`],
  };
}
