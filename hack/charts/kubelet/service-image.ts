import { resolve } from 'node:path';

/** What an image says of itself, and where its files are. */
export interface ServiceImage {
  /** What containers see as `workingFolder`. */
  readonly folder: string;
  readonly workingFolder: string;
  readonly entrypoint: readonly string[];
  /** The arguments of a container that has none. */
  readonly command: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  /** A path of this machine for each path that the base of the image adds. */
  readonly base: Readonly<Record<string, string>>;
}

/** Where the base of the images has Node.js. */
const node = '/nodejs/bin/node';

/** The image of a service as it would be made of this checkout: all of it, with the Node.js that runs the tests. */
export function checkoutImage(service: string): ServiceImage {
  return {
    folder: resolve(import.meta.dirname, '../../..'),
    workingFolder: '/app',
    entrypoint: [node],
    command: [`services/${service}/src/main.ts`],
    environment: {
      PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
      NODE_ENV: 'production',
    },
    base: { [node]: process.execPath },
  };
}
