export const follow = (box, rate) => {
  const draw = (t) => {
    box.style.left = t * rate + "px";
    requestAnimationFrame(draw);
  };
  requestAnimationFrame(draw);
};
