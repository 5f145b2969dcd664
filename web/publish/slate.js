/** A still image that is sent in place of a camera: with each frame of it the stream goes on. */

const GROUND = "#0f2a35";
const TEXT = "#eef6f8";
const SOFT = "#9db0b9";

export class Slate {
  #canvas = document.createElement("canvas");
  #lines;
  #timer = 0;
  #track;

  /** @param {{width: number, height: number, frameRate: number}} size @param {string[]} lines The first one is the largest. */
  constructor({ width, height, frameRate }, lines) {
    this.#canvas.width = width;
    this.#canvas.height = height;
    this.#lines = lines;
    this.#draw();
    this.#track = this.#canvas.captureStream(frameRate).getVideoTracks()[0];
    // A canvas has a frame for each time that something was drawn.
    this.#timer = setInterval(() => this.#draw(), 1000 / frameRate);
  }

  get track() { return this.#track; }

  #draw() {
    const { width, height } = this.#canvas;
    const pen = this.#canvas.getContext("2d");
    if (pen === null) return;
    pen.fillStyle = GROUND;
    pen.fillRect(0, 0, width, height);
    pen.textAlign = "center";
    const size = Math.min(width, height) / 10;
    this.#lines.forEach((line, index) => {
      pen.font = `${index === 0 ? 600 : 400} ${index === 0 ? size : size * 0.6}px system-ui, sans-serif`;
      pen.fillStyle = index === 0 ? TEXT : SOFT;
      pen.fillText(line, width / 2, height / 2 + index * size * 1.2, width * 0.9);
    });
  }

  stop() {
    clearInterval(this.#timer);
    this.#track.stop();
  }
}
