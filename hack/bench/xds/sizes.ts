/** How much is measured. */
export interface Sizes {
  /** Objects where their number is not what is measured. */
  readonly objects: number;
  readonly warmUpEdits: number;
  readonly edits: number;
  readonly kubectlEdits: number;
  readonly manyObjects: number;
  readonly manyObjectsEdits: number;
  readonly streams: number;
  readonly streamsEdits: number;
  readonly burstEdits: number;
  readonly burstStreams: number;
}

/** What the page shows. */
export const fullSizes: Sizes = {
  objects: 100,
  warmUpEdits: 20,
  edits: 200,
  kubectlEdits: 20,
  manyObjects: 10_000,
  manyObjectsEdits: 20,
  streams: 500,
  streamsEdits: 10,
  burstEdits: 1000,
  burstStreams: 10,
};

/** For trying. */
export const quickSizes: Sizes = {
  objects: 100,
  warmUpEdits: 5,
  edits: 20,
  kubectlEdits: 3,
  manyObjects: 1000,
  manyObjectsEdits: 5,
  streams: 50,
  streamsEdits: 5,
  burstEdits: 200,
  burstStreams: 3,
};
